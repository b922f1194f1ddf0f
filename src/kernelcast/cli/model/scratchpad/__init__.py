"""The command `kernelcast model scratchpad`."""
