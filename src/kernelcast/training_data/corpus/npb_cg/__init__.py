"""Sparse matrix-vector products of the conjugate gradient method."""
