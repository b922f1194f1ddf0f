"""Particles, fields, cells, finite elements and rays."""

import numpy as np
from numpy import float32, float64, int32, uint8, uint32
from numpy.random import Generator

from unseen_kernels.cases import (
    Buffer,
    Case,
    Content,
    Local,
    Restored,
    case,
    random_floats,
    round_up,
    zeros,
)


@case
def sph_density(rng: Generator) -> Case:
    """Compute densities at 12,288 particles."""
    n, unit = 12288, 128
    particles = Buffer(random_floats(rng, n, 4))
    arguments = (particles, zeros(n), Local(16 * unit), uint32(n), float32(0.1))
    return Case("sph_density", "sph_density", (n,), (unit,), arguments)


@case
def fem_tetrahedra(rng: Generator) -> Case:
    """Assemble 200,000 elements of a mesh of 40,000 points, numbered nearly along it."""
    elements, points = 200_000, 40_000
    near = (
        np.arange(elements)[:, None] // 5 + rng.integers(0, 50, (elements, 4)) + [0, 50, 100, 150]
    )
    x, y, z = (Buffer(random_floats(rng, points)) for _ in range(3))
    corners = Buffer((near % points).astype(int32))
    arguments = (corners, x, y, z, zeros(10, elements), int32(elements))
    return Case("fem_tetrahedra", "assemble", (round_up(elements, 64),), (64,), arguments)


@case
def wilson_hop(rng: Generator) -> Case:
    """Hop on a lattice of 24^4 sites."""
    n = 24
    links = Buffer(random_floats(rng, 4, 9, n**4, 2) - 0.5)
    spinors = Buffer(random_floats(rng, 3, n**4, 2))
    arguments = (links, spinors, zeros(3, n**4, 2), int32(n))
    return Case("wilson_hop", "hop", (n, n, n * n), (8, 4, 1), arguments)


@case
def euler_rusanov(rng: Generator) -> Case:
    """Advance a gas on 1,000 x 700 cells."""
    width, height = 1000, 700
    state = rng.random((height, width, 4)) * 0.1 + np.array([1.0, 0.0, 0.0, 2.5])
    numbers = (int32(width), int32(height), float64(0.1))
    items = (round_up(width - 2, 64), round_up(height - 2, 2))
    arguments = (Buffer(state), zeros(height, width, 4, dtype=float64), *numbers)
    return Case("euler_rusanov", "euler", items, (64, 2), arguments)


@case
def heart_cells(rng: Generator) -> Case:
    """Let 16,384 cells of a heart beat 100 steps."""
    n = 16384
    m, h, k = (Restored(random_floats(rng, n)) for _ in range(3))
    volts = Restored(random_floats(rng, n) * 20 - 70)
    arguments = (volts, m, h, k, float32(10), float32(0.01), int32(100))
    return Case("heart_cells", "beat", (n,), (64,), arguments)


@case
def line_relax(rng: Generator) -> Case:
    """Relax the columns of a grid of 256 x 256 x 64."""
    nx, ny, depth = 256, 256, 64
    rhs, old = (Buffer(random_floats(rng, depth, ny, nx)) for _ in range(2))
    arguments = (rhs, old, zeros(depth, ny, nx), int32(nx), int32(ny))
    return Case("line_relax", "line_relax", (nx, ny), (32, 2), arguments)


@case
def ray_triangles(rng: Generator) -> Case:
    """Trace 320 x 240 rays against 250 triangles."""
    width, height, count = 320, 240, 250
    corners = rng.normal(size=(count, 1, 4)) * 4 + rng.normal(size=(count, 3, 4)) + [0, 0, 12, 0]
    numbers = (int32(count), int32(width), int32(height))
    arguments = (Buffer(corners.astype(float32)), zeros(height, width), *numbers)
    return Case("ray_triangles", "nearest_hit", (width, height), (8, 8), arguments)


def bound_boxes(spheres: Content) -> Content:
    """Give the inner nodes of a full tree of boxes over spheres that lie in order."""
    low, high = spheres[:, :3] - spheres[:, 3:], spheres[:, :3] + spheres[:, 3:]
    levels = []
    while len(low) > 1:
        low, high = np.minimum(low[::2], low[1::2]), np.maximum(high[::2], high[1::2])
        boxes = np.zeros((len(low), 8), float32)
        boxes[:, :3], boxes[:, 4:7] = low, high
        levels.append(boxes)
    return np.concatenate(levels[::-1])


@case
def bvh_occlusion(rng: Generator) -> Case:
    """Find which of 100,000 points see the sun between 4,096 spheres."""
    count, points = 4096, 100_000
    spheres = random_floats(rng, count, 4) * np.array([1, 1, 1, 0.01], float32)
    cells = (spheres[:, :3] * 16).astype(int)
    keys = [((cells >> bit & 1) << 3 * bit) @ np.array([1, 2, 4]) for bit in range(4)]
    spheres = spheres[np.argsort(np.sum(keys, axis=0))]
    arguments = (
        Buffer(bound_boxes(spheres)), Buffer(spheres), zeros(points, dtype=uint8),
        Buffer(random_floats(rng, points, 4)), int32(count - 1),
    )  # fmt: skip
    return Case("bvh_occlusion", "occlusion", (points,), None, arguments)


@case
def capsule_field(rng: Generator) -> Case:
    """Compute distances from 20 bones on a grid of 96 x 96 x 64."""
    bones = Buffer(random_floats(rng, 20, 8) * np.array([1, 1, 1, 0.1, 1, 1, 1, 0], float32))
    items = (96, 96, 64)
    arguments = (bones, zeros(64, 96, 96), int32(20), float32(1 / 96))
    return Case("capsule_field", "distances", items, (8, 4, 2), arguments)
