"""Prices European options on binomial trees, one tree per work-group."""
