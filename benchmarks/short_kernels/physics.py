"""Particles, and fields on grids."""

import numpy as np
from numpy import float32, int32
from numpy.random import Generator

from short_kernels.cases import Buffer, Case, Restored, case, random_floats, zeros


@case
def md_neighbours(rng: Generator) -> Case:
    """Sum forces of 64 neighbours, some of which are near."""
    n, count = 32768, 64
    neighbours = (np.arange(n)[:, None] + rng.integers(-400, 400, (n, count))) % n
    places = Buffer(random_floats(rng, n, 4))
    arguments = (places, Buffer(neighbours.astype(int32)), zeros(n, 4), int32(count))
    return Case("md_neighbours", "md", (n,), (64,), arguments)


@case
def pic_scatter(rng: Generator) -> Case:
    """Add charges of almost sorted particles to cells, atomically."""
    n, cells = 1 << 20, 1 << 12
    places = np.sort(rng.random(n)) * 0.3 + rng.random(n) * 0.01
    arguments = (Buffer(places.astype(float32)), zeros(cells, dtype=int32), int32(cells), int32(n))
    return Case("pic_scatter", "pic", (n,), (128,), arguments)


@case
def pic_push(rng: Generator) -> Case:
    """Push particles by the field where they are."""
    n, cells = 1 << 21, 1 << 14
    particles, field = Restored(random_floats(rng, n, 2)), Buffer(random_floats(rng, cells))
    return Case("pic_push", "push", (n,), (128,), (particles, field, float32(0.1), int32(cells)))


@case
def heat3d(rng: Generator) -> Case:
    """Spread heat in a volume."""
    n = 192
    arguments = (Buffer(random_floats(rng, n, n, n)), zeros(n, n, n), int32(n))
    return Case("heat3d", "heat", (n, n, n), (32, 4, 2), arguments)


@case
def lbm_d2q9(rng: Generator) -> Case:
    """Do a step of a lattice Boltzmann method with nine directions."""
    n = 768
    arguments = (Buffer(random_floats(rng, 9, n, n)), zeros(9, n, n), int32(n))
    return Case("lbm_d2q9", "lbm", (n, n), (64, 2), arguments)


@case
def hotspot(rng: Generator) -> Case:
    """Spread the heat of a chip."""
    n = 1024
    heat, power = (Buffer(random_floats(rng, n, n)) for _ in range(2))
    return Case("hotspot", "hs", (n, n), (16, 16), (heat, power, zeros(n, n), int32(n)))


@case
def cutcp(rng: Generator) -> Case:
    """Sum potentials of 400 atoms within a distance."""
    n, atoms = 96, 400
    charges = Buffer((random_floats(rng, atoms, 4) * n).astype(float32))
    arguments = (charges, zeros(n, n, 16), int32(n), int32(atoms), float32(144))
    return Case("cutcp", "cut", (n, n, 16), (16, 4, 1), arguments)
