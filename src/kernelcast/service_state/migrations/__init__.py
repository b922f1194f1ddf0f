"""Migrations of the service's tables."""
