"""A page per kernel: all of its launches on all devices."""
