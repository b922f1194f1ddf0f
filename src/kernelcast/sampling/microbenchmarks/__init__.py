"""Microbenchmarks: what a device's instructions, memories and launches cost."""
