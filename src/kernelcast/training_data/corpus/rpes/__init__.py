"""Two-electron repulsion integrals of a cluster of water molecules."""
