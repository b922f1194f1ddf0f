"""Solution of a heat equation by three-dimensional fast Fourier transforms."""
