"""Products with sparse matrices whose rows are very uneven."""
