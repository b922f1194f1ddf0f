"""Counts the 64 classes of bytes into a histogram per work-group."""
