"""The commands; translates between the terminal and `kernelcast.predictor`."""

from kernelcast.cli.app import app, main

__all__ = ["app", "main"]
