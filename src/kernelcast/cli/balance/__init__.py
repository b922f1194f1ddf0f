"""The command `kernelcast balance`."""
