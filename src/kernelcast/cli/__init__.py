"""The commands: translates between the terminal and the rooms below."""

from kernelcast.cli.app import app, main

__all__ = ["app", "main"]
