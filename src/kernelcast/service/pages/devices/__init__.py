"""Devices and what was measured of them."""
