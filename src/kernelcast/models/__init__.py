"""Predictions of whole-kernel time from samples, with intervals."""
