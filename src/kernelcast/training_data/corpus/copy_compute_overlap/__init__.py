"""Computes hypotenuses of pairs of legs, several times over to cost time."""
