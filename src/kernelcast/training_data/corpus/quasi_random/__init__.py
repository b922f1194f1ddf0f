"""Generates quasi-random points and turns uniform numbers into normal ones."""
