"""The benchmark corpus, its collection and the store of observations."""
