"""What happens to photographs on their way from a sensor to a screen or a file."""
