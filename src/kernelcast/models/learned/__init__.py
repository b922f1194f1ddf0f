"""Regressors of a correction, behind one protocol; what they learn is plain arrays."""
