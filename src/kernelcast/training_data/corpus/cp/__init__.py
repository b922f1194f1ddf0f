"""Coulomb potential on a slice of a lattice, summed directly over all atoms."""
