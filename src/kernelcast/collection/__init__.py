"""Collects observations: samples, features and whole runs of the corpus on devices."""
