"""Linear algebra of special shapes, and differential equations of finance."""

import numpy as np
from numpy import float32, float64, int32, int64, uint32
from numpy.random import Generator

from unseen_kernels.cases import Buffer, Case, case, random_floats, round_up, zeros


@case
def crank_nicolson(rng: Generator) -> Case:
    """Value 4,096 options in 100 implicit steps."""
    options, steps = 4096, 100
    strikes = Buffer(rng.random(options) * 100 + 50)
    numbers = (float64(0.03), float64(0.25), float64(1), int32(steps))
    arguments = (strikes, zeros(options, dtype=float64), *numbers)
    return Case("crank_nicolson", "crank_nicolson", (options,), (32,), arguments)


@case
def banded_matvec(rng: Generator) -> Case:
    """Multiply a matrix of 31 diagonals with a vector of 100,003."""
    n, half = 100_003, 15
    diagonals, x = Buffer(rng.random((2 * half + 1, n))), Buffer(rng.random(n))
    arguments = (diagonals, x, zeros(n, dtype=float64), int64(n), int32(half))
    return Case("banded_matvec", "banded", (round_up(n, 64),), (64,), arguments)


@case
def batched_cholesky(rng: Generator) -> Case:
    """Factorise 20,000 matrices of 12 by 12."""
    count, m = 20_000, 12
    matrices = random_floats(rng, m, m, count) * 0.1 + 2 * np.eye(m, dtype=float32)[:, :, None]
    arguments = (Buffer(matrices), zeros(m, m, count), int32(count))
    return Case("batched_cholesky", "cholesky", (count,), None, arguments)


@case
def packed_symv(rng: Generator) -> Case:
    """Multiply a symmetric matrix of 4,096 with a vector."""
    n = 4096
    packed = Buffer(random_floats(rng, n * (n + 1) // 2))
    return Case(
        "packed_symv",
        "symv",
        (n,),
        (32,),
        (packed, Buffer(random_floats(rng, n)), zeros(n), uint32(n)),
    )


@case
def block_sparse(rng: Generator) -> Case:
    """Multiply 20,000 rows of 1 to 15 blocks with a vector."""
    rows = 20_000
    begins = np.concatenate([[0], np.cumsum(rng.integers(1, 16, rows))]).astype(int32)
    columns = Buffer(rng.integers(0, rows, begins[-1]).astype(int32))
    blocks = Buffer(random_floats(rng, begins[-1], 16))
    x = Buffer(random_floats(rng, rows, 4))
    arguments = (Buffer(begins), columns, blocks, x, zeros(rows, 4))
    return Case("block_sparse", "bsr", (rows,), None, arguments)
