"""Motion estimation: sums of absolute differences at all positions of a window."""
