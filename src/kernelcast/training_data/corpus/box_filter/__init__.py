"""Averages the pixels of a row over a window, staged in local memory."""
