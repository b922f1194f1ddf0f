"""What bounds a launch on a GPU: the time of every limiter, and how they overlap."""
