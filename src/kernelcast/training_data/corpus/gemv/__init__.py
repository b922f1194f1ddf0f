"""Multiplies a column-major matrix, or its transpose, and a vector."""
