"""Takes a sweep of the Jacobi method for the Poisson equation in two dimensions."""
