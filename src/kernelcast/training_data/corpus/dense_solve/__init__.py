"""Solves and factorises many small systems, transposes and updates large matrices."""
