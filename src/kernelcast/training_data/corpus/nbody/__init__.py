"""Moves bodies by the gravity of all others, staged in local memory."""
