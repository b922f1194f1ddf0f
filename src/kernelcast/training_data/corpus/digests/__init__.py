"""Hashes and encrypts many pieces of data."""
