"""The command `kernelcast model`."""
