"""Requests of callers who mean harm, and what each must get."""
