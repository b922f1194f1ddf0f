"""Time steps and sweeps on grids of three dimensions."""
