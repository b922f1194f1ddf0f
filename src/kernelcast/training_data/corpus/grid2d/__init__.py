"""Time steps on grids of two dimensions: heat, waves, water, fields, cells."""
