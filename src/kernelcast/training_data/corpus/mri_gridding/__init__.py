"""Scattered MRI samples sorted into tiles and spread onto a grid."""
