"""Counts how long points of the plane stay bounded."""
