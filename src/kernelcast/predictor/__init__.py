"""Answers launches: what is known, sampled, learned and modelled becomes one estimate."""
