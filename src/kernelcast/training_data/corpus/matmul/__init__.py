"""Multiplies square matrices tile by tile in local memory."""
