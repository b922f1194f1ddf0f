"""Finds the edges of a colour image with the Sobel operator."""
