"""Takes a step of the heat equation in three dimensions, in two ways."""
