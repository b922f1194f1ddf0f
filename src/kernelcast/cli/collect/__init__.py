"""The command `kernelcast collect`."""
