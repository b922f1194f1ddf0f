"""Dense linear algebra, stencils in the plane, and rows of dynamic programs."""

import numpy as np
from numpy import float32, int32, uint8
from numpy.random import Generator

from short_kernels.cases import Buffer, Case, Restored, case, random_floats, zeros


@case
def gemm_naive(rng: Generator) -> Case:
    """Multiply matrices, an element per work-item."""
    n = 640
    a, b, c = (Buffer(random_floats(rng, n, n)) for _ in range(3))
    arguments = (a, b, c, float32(1.5), float32(0.5), int32(n))
    return Case("gemm_naive", "gemm", (n, n), (32, 8), arguments)


@case
def gemm_tiled(rng: Generator) -> Case:
    """Multiply matrices, with tiles in local memory."""
    n = 768
    a, b = (Buffer(random_floats(rng, n, n)) for _ in range(2))
    return Case("gemm_tiled", "gemmt", (n, n), (16, 16), (a, b, zeros(n, n), int32(n)))


@case
def atax1(rng: Generator) -> Case:
    """Multiply a matrix and a vector, a row per work-item."""
    n = 4096
    a, x = Buffer(random_floats(rng, n, n)), Buffer(random_floats(rng, n))
    return Case("atax1", "atax", (n,), (256,), (a, x, zeros(n), int32(n), int32(n)))


@case
def mvt_col(rng: Generator) -> Case:
    """Multiply a transposed matrix and a vector, a column per work-item."""
    n = 2048
    a = Buffer(random_floats(rng, n, n))
    x, y = (Buffer(random_floats(rng, n)) for _ in range(2))
    return Case("mvt_col", "mvt", (n,), (64,), (a, x, y, int32(n)))


@case
def correlation(rng: Generator) -> Case:
    """Correlate columns: the first work-items have most to do."""
    n = 512
    arguments = (zeros(n, n), Buffer(random_floats(rng, n, n)), int32(n), int32(n))
    return Case("correlation", "corr", (n,), (16,), arguments)


@case
def fdtd2d(rng: Generator) -> Case:
    """Advance an electric field in the plane."""
    n = 2048
    electric, magnetic = (Buffer(random_floats(rng, n, n)) for _ in range(2))
    return Case("fdtd2d", "ey", (n, n), (32, 8), (electric, magnetic, int32(n), int32(n)))


@case
def jacobi1d_small(rng: Generator) -> Case:
    """Average neighbours on a short line."""
    n = 65536
    a = Buffer(random_floats(rng, n))
    return Case("jacobi1d_small", "j1", (n,), (256,), (a, zeros(n), int32(n)))


@case
def syrk_fp64(rng: Generator) -> Case:
    """Multiply a matrix and its transpose in double precision, lower half only."""
    n = 512
    a, c = (Buffer(rng.random((n, n))) for _ in range(2))
    return Case("syrk_fp64", "syrk", (n, n), (16, 16), (a, c, int32(n), int32(n)))


@case
def knapsack_row(rng: Generator) -> Case:
    """Compute a row of the knapsack problem."""
    n = 65536
    before = Buffer(np.sort(rng.integers(0, 10000, n)).astype(int32))
    arguments = (before, zeros(n, dtype=int32), int32(137), int32(55), int32(n - 1))
    return Case("knapsack_row", "ks", (n,), (64,), arguments)


@case
def lcs_diagonal(rng: Generator) -> Case:
    """Compute the longest anti-diagonal of the longest common subsequence."""
    n = 8192
    a, b = (Buffer(rng.integers(0, 4, n).astype(uint8)) for _ in range(2))
    p2, p1 = (Buffer(rng.integers(0, 50, n + 1).astype(int32)) for _ in range(2))
    arguments = (a, b, p2, p1, zeros(n + 1, dtype=int32), int32(n), int32(n))
    return Case("lcs_diagonal", "lcs", (n,), (128,), arguments)


@case
def nw_block(rng: Generator) -> Case:
    """Align sequences: a diagonal of tiles in local memory."""
    n, unit = 2048, 16
    reference = Buffer(rng.integers(-4, 10, (n + 1, n + 1)).astype(int32))
    numbers = (int32(n + 1), int32(10), int32(n // unit), int32(n // unit))
    items = zeros(n + 1, n + 1, dtype=int32)
    return Case("nw_block", "nw", (n,), (unit,), (reference, items, *numbers))


@case
def pathfinder_row(rng: Generator) -> Case:
    """Find the cheapest ways down to a row."""
    n = 1 << 20
    weights = Buffer(rng.integers(0, 10, (4, n)).astype(int32))
    before = Buffer(rng.integers(0, 99, n).astype(int32))
    arguments = (weights, before, zeros(n, dtype=int32), int32(n), int32(2))
    return Case("pathfinder_row", "pf", (n,), (256,), arguments)


@case
def floyd_step(rng: Generator) -> Case:
    """Do a step of all shortest paths."""
    n = 1024
    lengths = Restored(rng.integers(1, 1000, (n, n)).astype(int32))
    return Case("floyd_step", "fw", (n, n), (64, 4), (lengths, int32(n), int32(300)))


@case
def backprop_layer(rng: Generator) -> Case:
    """Compute a layer of neurons, a neuron per work-item."""
    n, units = 16384, 512
    x, w = Buffer(random_floats(rng, n)), Buffer(random_floats(rng, n, units))
    arguments = (x, w, zeros(units), int32(n), int32(units))
    return Case("backprop_layer", "bp", (units,), (16,), arguments)


@case
def batched_lu(rng: Generator) -> Case:
    """Factorise many matrices of 16 by 16, a matrix per work-item."""
    count, n = 8192, 16
    matrices = (rng.random((count, n, n)) + n * np.eye(n)).astype(float32)
    return Case("batched_lu", "lu", (count,), (32,), (Restored(matrices),))


@case
def thomas_batch(rng: Generator) -> Case:
    """Solve many tridiagonal systems, a system per work-item."""
    n, count = 256, 8192
    a, d = (Buffer(random_floats(rng, n, count)) for _ in range(2))
    arguments = (a, d, zeros(n, count), zeros(n, count), int32(n), int32(count))
    return Case("thomas_batch", "thomas", (count,), (64,), arguments)
