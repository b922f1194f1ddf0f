"""Multiplies a sparse matrix of uneven rows and a vector."""
