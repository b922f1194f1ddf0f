"""Copies of a kernel that count what they execute and record where they touch memory."""
