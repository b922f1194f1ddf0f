"""Encodes text, looks for strings in it, compares words."""
