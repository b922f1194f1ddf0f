"""The page *Compare*: two models on the same launches."""
