"""The command `kernelcast trace`."""
