"""Chooses launch configurations by models, and measures the best of them where that is asked."""
