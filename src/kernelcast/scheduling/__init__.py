"""Gives estimates to schedulers that exist, and simulates what accuracy is worth to one."""
