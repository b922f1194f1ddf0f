"""Takes the dot products of many pairs of vectors of four."""
