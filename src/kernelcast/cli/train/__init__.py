"""The command `kernelcast train`."""
