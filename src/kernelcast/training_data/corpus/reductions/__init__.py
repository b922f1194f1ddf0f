"""Reduces many numbers to one for each work-group, in three ways."""
