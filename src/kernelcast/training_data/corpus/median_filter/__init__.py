"""Takes the median of 3 x 3 neighbours for each colour of an image."""
