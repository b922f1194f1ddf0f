"""Two-point angular correlation of points on the sky."""
