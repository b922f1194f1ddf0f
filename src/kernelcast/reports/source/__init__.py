"""What people are told of a kernel's source: counts and address expressions in words."""
