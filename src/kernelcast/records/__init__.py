"""Frozen records and the error tree that pass between rooms; standard library and numpy only.

Tables, JSON and YAML load pandas, cattrs and PyYAML when they are asked for.
"""
