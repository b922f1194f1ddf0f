"""The command `kernelcast calibrate`."""
