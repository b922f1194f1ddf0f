"""Frozen records and the error tree that pass between rooms; standard library and numpy only.

Tables and JSON load pandas and cattrs when they are asked for.
"""
