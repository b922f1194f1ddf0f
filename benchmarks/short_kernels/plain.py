"""Kernels that compute much: Monte Carlo, pricing, backtracking, distances."""

import numpy as np
from numpy import float32, int32, uint8
from numpy.random import Generator

from short_kernels.cases import (
    Buffer,
    Case,
    case,
    random_floats,
    random_words,
    round_up,
    zeros,
)


@case
def mc_option(rng: Generator) -> Case:
    """Price an option by 256 random paths per work-item."""
    n = 1 << 14
    numbers = (int32(256), float32(100), float32(105), float32(0.03), float32(0.2))
    arguments = (Buffer(random_words(rng, n, least=1)), zeros(n), *numbers)
    return Case("mc_option", "mc", (n,), (64,), arguments)


@case
def mc_reject(rng: Generator) -> Case:
    """Draw random numbers until 16 are accepted."""
    n = 1 << 17
    arguments = (Buffer(random_words(rng, n, least=1)), zeros(n), float32(0.2))
    return Case("mc_reject", "rej", (n,), (64,), arguments)


@case
def blackscholes_small(rng: Generator) -> Case:
    """Price few options in closed form."""
    n = 16384
    prices, strikes, years = (Buffer(random_floats(rng, n) + add) for add in (1, 1, 0.1))
    arguments = (prices, strikes, years, zeros(n), float32(0.02), float32(0.3))
    return Case("blackscholes_small", "bs", (n,), (64,), arguments)


@case
def nqueens(rng: Generator) -> Case:
    """Count the ways to place eleven queens, three rows of which are given."""
    n = 11
    starts = [
        (a, b, c)
        for a in range(n)
        for b in range(n)
        for c in range(n)
        if abs(a - b) > 1 and abs(b - c) > 1 and c != a and abs(a - c) != 2
    ]
    count = round_up(len(starts), 32)
    starts += [(-1, -1, -1)] * (count - len(starts))
    arguments = (Buffer(np.array(starts, int32)), zeros(count, dtype=int32), int32(n))
    return Case("nqueens", "nq", (count,), (32,), arguments)


@case
def mandel_deep(rng: Generator) -> Case:
    """Count how long points stay within a circle, 500 steps at most."""
    width, height = 768, 512
    arguments = (zeros(height, width, dtype=uint8), int32(width), int32(height), int32(500))
    return Case("mandel_deep", "md", (width, height), (16, 16), arguments)


@case
def kmeans_assign(rng: Generator) -> Case:
    """Find the nearest of 16 centres."""
    n, centres, dimensions = 1 << 17, 16, 8
    points = Buffer(random_floats(rng, dimensions, n))
    means = Buffer(random_floats(rng, centres, dimensions))
    numbers = (int32(n), int32(centres), int32(dimensions))
    return Case(
        "kmeans_assign", "km", (n,), (256,), (points, means, zeros(n, dtype=int32), *numbers)
    )


@case
def nn_distance(rng: Generator) -> Case:
    """Compute distances from a place."""
    n = 43008
    arguments = (Buffer(random_floats(rng, n, 2)), zeros(n), int32(42764), float32(30), float32(90))
    return Case("nn_distance", "nn", (n,), (64,), arguments)
