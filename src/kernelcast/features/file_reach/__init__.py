"""Whether a source, or what its macros can become, could make a compiler open a file."""
