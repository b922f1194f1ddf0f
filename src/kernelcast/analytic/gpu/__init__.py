"""Analytic model of GPUs: volumes in the memory hierarchy, limiters and time."""
