"""Accesses typed as text instead of extracted from OpenCL C."""
