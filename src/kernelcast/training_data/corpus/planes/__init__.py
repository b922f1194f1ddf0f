"""Rays, spins, seeds and transforms over a plane."""
