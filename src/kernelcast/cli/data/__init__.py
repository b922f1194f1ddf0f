"""The command `kernelcast data`."""
