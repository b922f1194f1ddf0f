"""The command `kernelcast simulate`."""
