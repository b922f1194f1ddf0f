"""Sorts keys by a digit: within blocks, then between them."""
