"""Parts of a transformer: attention, normalisation, embedding, 4-bit weights."""
