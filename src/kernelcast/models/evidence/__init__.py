"""An estimate as a fusion of pieces of evidence: each a time with its variance."""
