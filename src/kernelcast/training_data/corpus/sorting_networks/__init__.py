"""Sorts pairs of keys and values by bitonic networks: in local memory, and step by step."""
