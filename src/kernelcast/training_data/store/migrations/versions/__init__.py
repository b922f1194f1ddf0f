"""One file per version, numbered."""
