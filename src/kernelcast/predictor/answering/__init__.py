"""Tiers of an estimate: history, learned model, samples, analytic model, whichever is best."""
