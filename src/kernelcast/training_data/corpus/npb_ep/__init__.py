"""Pairs of Gaussian random numbers, counted by square rings."""
