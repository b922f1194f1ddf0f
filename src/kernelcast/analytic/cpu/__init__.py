"""Analytic models of CPUs: cache traffic, Roofline and Execution-Cache-Memory (ECM)."""
