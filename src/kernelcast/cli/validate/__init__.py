"""The command `kernelcast validate`."""
