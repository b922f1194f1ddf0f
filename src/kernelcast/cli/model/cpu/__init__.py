"""The command `kernelcast model cpu`."""
