"""What machines find in images: likeness, corners, depth."""
