"""Coulomb potential with a cutoff on a lattice, atoms in bins."""
