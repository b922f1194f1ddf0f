"""Steps of a multigrid solver in three dimensions."""
