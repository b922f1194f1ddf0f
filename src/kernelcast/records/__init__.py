"""Frozen records and the error tree that pass between rooms; standard library and numpy only."""
