"""Layers of a convolutional network: convolutions, pooling, normalisation."""
