"""Multiplies a matrix and a vector in six ways."""
