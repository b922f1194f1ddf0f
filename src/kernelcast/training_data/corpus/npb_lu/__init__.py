"""Initial values of the lower-upper Gauss-Seidel flow solver."""
