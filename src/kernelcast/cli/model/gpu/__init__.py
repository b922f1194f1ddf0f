"""The command `kernelcast model gpu`."""
