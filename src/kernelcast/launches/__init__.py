"""A problem becomes a prepared, understood launch: problem and machine files, counts, models."""
