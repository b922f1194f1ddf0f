"""Initial values of the block-tridiagonal flow solver."""
