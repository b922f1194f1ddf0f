"""A launch's time from its source and its device's description alone: nothing is run for it."""
