"""The benchmark corpus, importers and the store of observations."""
