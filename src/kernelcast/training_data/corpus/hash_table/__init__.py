"""Inserts keys into an open hash table and looks values up in one."""
