"""The page *A/B*: two models on the same launches."""
