"""Basic blocks: what each executes, and how often in terms of a few counters."""
