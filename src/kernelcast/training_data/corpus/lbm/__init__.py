"""Fluid flow through obstacles by the lattice-Boltzmann method."""
