"""Takes a step of a three-dimensional stencil of radius four."""
