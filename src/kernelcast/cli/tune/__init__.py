"""The command `kernelcast tune`."""
