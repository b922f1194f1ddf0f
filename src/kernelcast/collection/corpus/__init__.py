"""The corpus as problems: its files, inputs and checks."""
