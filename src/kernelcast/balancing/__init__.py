"""One kernel over several devices at once: estimates, shares, runs, one result."""
