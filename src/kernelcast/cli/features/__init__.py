"""The command `kernelcast features`."""
