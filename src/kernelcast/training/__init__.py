"""Learned models from stored observations: training, validation, and where they are kept."""
