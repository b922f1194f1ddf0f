"""The command `kernelcast serve`."""
