"""Goes one level further in a breadth-first search of a graph with hubs."""
