"""Multiplies matrices in single precision, with results in registers."""
