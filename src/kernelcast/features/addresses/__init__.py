"""Follows whole numbers and pointers through a kernel, to its addresses."""
