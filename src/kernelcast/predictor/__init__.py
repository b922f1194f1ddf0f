"""Composes the rooms: problem files, estimates, measurements, devices in child processes."""
