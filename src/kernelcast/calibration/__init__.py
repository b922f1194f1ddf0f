"""Measures what a device can do, resumable, into a machine description."""
