"""How often code runs and how warps touch memory: what hardware counters would say on a GPU."""
