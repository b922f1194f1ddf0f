"""Steps of sorting and selecting: counts of digits, merges, compaction."""
