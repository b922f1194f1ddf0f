"""Parts of neural networks at work."""

import numpy as np
from numpy import float16, float32, int8, int32, uint8, uint32
from numpy.random import Generator

from unseen_kernels.cases import Buffer, Case, case, random_floats, zeros


@case
def attention_decode(rng: Generator) -> Case:
    """Attend to 2,048 tokens with 32 heads of 64."""
    heads, tokens, width = 32, 2048, 64
    query = Buffer(random_floats(rng, heads, width))
    shape = (heads, tokens, width)
    keys, values = (Buffer(rng.normal(size=shape).astype(float16)) for _ in range(2))
    arguments = (query, keys, values, zeros(heads, width), int32(tokens))
    return Case("attention_decode", "attend", (heads * 128,), (128,), arguments)


@case
def conv_int8(rng: Generator) -> Case:
    """Convolve 56 x 56 pixels of 64 channels to 64."""
    side, channels, filters = 56, 64, 64
    pixels, weights = (
        Buffer(rng.integers(-128, 128, shape).astype(int8))
        for shape in ((side, side, channels), (filters, 3, 3, channels))
    )
    numbers = (int32(side), int32(side), int32(channels // 4), int32(filters), float32(1e-3))
    arguments = (pixels, weights, zeros(side, side, filters, dtype=int8), *numbers)
    return Case("conv_int8", "conv", (filters, side, side), (64, 1, 1), arguments)


@case
def group_norm(rng: Generator) -> Case:
    """Normalise 32 images of 128 channels in 32 groups."""
    images, channels, groups, pixels = 32, 128, 32, 32 * 32
    x = Buffer(random_floats(rng, images, channels, pixels))
    gamma, beta = (Buffer(random_floats(rng, channels // groups)) for _ in range(2))
    numbers = (uint32(channels // groups), uint32(pixels))
    items = (images * groups * 256,)
    arguments = (x, zeros(images, channels, pixels), gamma, beta, *numbers)
    return Case("group_norm", "group_norm", items, (256,), arguments)


@case
def gemv_q6(rng: Generator) -> Case:
    """Multiply 4,096 x 4,096 weights of 6 bits with a vector."""
    rows, blocks = 4096, 64
    matrix = np.zeros((rows, blocks), [("quants", uint8, 48), ("scale", float32)])
    matrix["quants"] = rng.integers(0, 256, (rows, blocks, 48), dtype=uint8)
    matrix["scale"] = random_floats(rng, rows, blocks) * 0.01
    x = Buffer(random_floats(rng, blocks * 64))
    return Case(
        "gemv_q6", "gemv_q6", (32, rows), (32, 8), (Buffer(matrix), x, zeros(rows), int32(blocks))
    )


@case
def expert_router(rng: Generator) -> Case:
    """Send 2,048 tokens of width 1,024 to two of 64 experts each."""
    tokens, width = 2048, 1024
    hidden = Buffer(random_floats(rng, tokens, width) - 0.5)
    weights = Buffer(random_floats(rng, width, 64) - 0.5)
    results = (zeros(tokens, 2, dtype=int32), zeros(tokens, 2))
    return Case(
        "expert_router", "route", (tokens,), (16,), (hidden, weights, *results, int32(width))
    )


@case
def paged_scores(rng: Generator) -> Case:
    """Score 1,024 tokens of each of 16 sequences, keys of 128 in pages all over the cache."""
    sequences, tokens, quads = 16, 1024, 32
    pages = tokens // 16
    table = Buffer(rng.permutation(sequences * pages).astype(int32))
    queries = Buffer(random_floats(rng, sequences, quads, 4))
    cache = Buffer(random_floats(rng, sequences * tokens, quads, 4))
    numbers = (int32(pages), int32(quads))
    arguments = (queries, cache, table, zeros(sequences, tokens), *numbers)
    return Case("paged_scores", "paged_scores", (tokens, sequences), (64, 1), arguments)
