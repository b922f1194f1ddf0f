"""The command `kernelcast starpu`."""
