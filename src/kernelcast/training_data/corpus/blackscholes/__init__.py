"""Prices European options by the formula of Black and Scholes."""
