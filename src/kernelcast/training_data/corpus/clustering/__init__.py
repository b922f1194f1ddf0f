"""Steps of finding clusters and neighbours among many points."""
