"""Machine and address expressions to cycles, bytes and seconds; pure, no device."""
