"""The command `kernelcast estimate`."""
