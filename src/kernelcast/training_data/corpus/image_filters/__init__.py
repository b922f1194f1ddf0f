"""Filters of images: blur, edges, contrast, size, sums."""
