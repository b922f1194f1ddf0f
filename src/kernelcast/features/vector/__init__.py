"""Feature vectors: each feature by name, meaning and formula; see its `catalogue`."""
