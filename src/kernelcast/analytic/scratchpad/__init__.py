"""The model of processors with scratchpads instead of caches (SW26010)."""
