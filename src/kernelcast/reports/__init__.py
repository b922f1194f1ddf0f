"""Tables, JSON and pictures of results, for command line and service alike."""
