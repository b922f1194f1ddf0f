"""Gives estimates to schedulers that exist."""
