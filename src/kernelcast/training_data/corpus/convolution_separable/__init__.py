"""Convolves an image with a separable filter: along rows, then along columns."""
