"""Takes a step of a nine-point stencil, staged in local memory."""
