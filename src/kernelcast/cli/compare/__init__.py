"""The command `kernelcast compare`."""
