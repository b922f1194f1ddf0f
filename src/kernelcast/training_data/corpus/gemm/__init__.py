"""Multiplies dense matrices: large, small and many, symmetric."""
