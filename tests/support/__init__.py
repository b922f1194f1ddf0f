"""Builders, fakes and recordings for tests; never imported at run time."""
