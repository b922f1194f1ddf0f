"""A function's syntax tree, read out of libclang in one pass."""
