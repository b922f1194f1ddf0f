"""Transposes a matrix, one side of the copy with large strides."""
