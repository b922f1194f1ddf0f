"""The command `kernelcast corpus`."""
