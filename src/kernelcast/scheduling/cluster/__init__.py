"""A simulated cluster of different devices: what accurate estimates are worth to a scheduler."""
