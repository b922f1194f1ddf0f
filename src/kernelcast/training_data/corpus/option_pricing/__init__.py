"""Prices an Asian option by random paths."""
