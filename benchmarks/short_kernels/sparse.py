"""Sparse matrices."""

import numpy as np
from numpy import int32, uint32
from numpy.random import Generator

from short_kernels.cases import Buffer, Case, Content, case, random_floats, round_up, zeros


def make_rows(rng: Generator, lengths: Content) -> tuple[Buffer, Buffer, Buffer]:
    """Give beginnings of rows, columns all over, and values of a square matrix."""
    n = len(lengths)
    rows = np.zeros(n + 1, int32)
    rows[1:] = np.cumsum(lengths)
    columns = rng.integers(0, n, rows[-1]).astype(int32)
    return Buffer(rows), Buffer(columns), Buffer(random_floats(rng, int(rows[-1])))


@case
def spmv_sorted_desc(rng: Generator) -> Case:
    """Multiply by a matrix whose longest rows come first."""
    n = 1 << 17
    lengths = np.sort((rng.pareto(1.5, n) * 4 + 1).clip(1, 3000).astype(int32))[::-1]
    matrix = make_rows(rng, lengths)
    arguments = (*matrix, Buffer(random_floats(rng, n)), zeros(n), int32(n))
    return Case("spmv", "spmv", (n,), (128,), arguments)


@case
def spmv_banded(rng: Generator) -> Case:
    """Multiply by a matrix of nine diagonals."""
    n = 1 << 18
    diagonals = np.array([-600, -599, -1, 0, 1, 2, 3, 599, 600])
    columns = (np.repeat(np.arange(n), 9) + np.tile(diagonals, n)).clip(0, n - 1).astype(int32)
    matrix = (np.arange(n + 1, dtype=int32) * 9, columns, random_floats(rng, 9 * n))
    vectors = (Buffer(random_floats(rng, n)), zeros(n))
    return Case("spmv", "spmv", (n,), (64,), (*map(Buffer, matrix), *vectors, int32(n)))


@case
def coo_few_rows(rng: Generator) -> Case:
    """Multiply by a matrix of 64 rows in any order: all add to the same places."""
    count, n, width = 1 << 20, 64, 1 << 16
    rows = rng.integers(0, n, count).astype(int32)
    return multiply_triplets(rng, rows, n, width)


@case
def coo_sorted(rng: Generator) -> Case:
    """Multiply by a matrix whose elements are sorted by row."""
    count, n = 1 << 21, 1 << 17
    rows = np.sort(rng.integers(0, n, count)).astype(int32)
    return multiply_triplets(rng, rows, n, n)


def multiply_triplets(rng: Generator, rows: Content, n: int, width: int) -> Case:
    """Multiply by a matrix in coordinates, an element per work-item, by atomic additions."""
    count = len(rows)
    columns = Buffer(rng.integers(0, width, count).astype(int32))
    values, x = (Buffer(random_floats(rng, size)) for size in (count, width))
    arguments = (Buffer(rows), columns, values, x, zeros(n, dtype=uint32), int32(count))
    return Case("coo", "coo", (count,), (128,), arguments)


@case
def ell_spmv(rng: Generator) -> Case:
    """Multiply by a matrix in ELLPACK with hardly any padding."""
    n, k = 1 << 17, 24
    columns = Buffer(rng.integers(-1, n, (k, n)).astype(int32))
    values, x = Buffer(random_floats(rng, k, n)), Buffer(random_floats(rng, n))
    arguments = (columns, values, x, zeros(n), int32(n), int32(k))
    return Case("ell_spmv", "ell", (n,), (256,), arguments)


@case
def sptrsv_level(rng: Generator) -> Case:
    """Solve a level of a triangular system, rows in any order."""
    n, low, high = 200000, 40000, 70000
    rows, columns, values = make_rows(rng, rng.integers(1, 12, n))
    order = Buffer(rng.permutation(n).astype(int32))
    x, b = (Buffer(random_floats(rng, n)) for _ in range(2))
    arguments = (order, rows, columns, values, x, b, int32(low), int32(high))
    return Case("sptrsv_level", "tri", (round_up(high - low, 64),), (64,), arguments)
