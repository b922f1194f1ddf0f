"""Transforms many sequences of 512 complex numbers, forwards and back."""
