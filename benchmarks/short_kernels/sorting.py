"""Histograms, scans, sums and sorts."""

import numpy as np
from numpy import float32, int32, uint8, uint32
from numpy.random import Generator

from short_kernels.cases import (
    Buffer,
    Case,
    Local,
    Restored,
    case,
    random_floats,
    random_words,
    zeros,
)


@case
def hist256_local(rng: Generator) -> Case:
    """Count bytes in local memory, then add them up."""
    n = 1 << 23
    data = Buffer(rng.normal(128, 30, n).clip(0, 255).astype(uint8))
    arguments = (data, zeros(256, dtype=uint32), int32(n))
    return Case("hist256_local", "hist", (256 * 256,), (256,), arguments)


@case
def hist_global(rng: Generator) -> Case:
    """Count words in 4,096 places of global memory."""
    n = 1 << 21
    arguments = (Buffer(random_words(rng, n)), zeros(4096, dtype=uint32), int32(n))
    return Case("hist_global", "hg", (n,), (256,), arguments)


@case
def scan_block(rng: Generator) -> Case:
    """Scan each work-group's numbers in local memory."""
    n = 1 << 21
    data = Buffer(rng.integers(0, 9, n).astype(int32))
    arguments = (data, zeros(n, dtype=int32), zeros(n // 256, dtype=int32), Local(1024))
    return Case("scan_block", "scan", (n,), (256,), arguments)


@case
def bitonic_step(rng: Generator) -> Case:
    """Do a step of a bitonic sort."""
    n = 1 << 22
    arguments = (Restored(random_words(rng, n)), uint32(1 << 12), uint32(1 << 16))
    return Case("bitonic_step", "bit", (n,), (256,), arguments)


@case
def radix_scatter(rng: Generator) -> Case:
    """Write words where a radix sort has them."""
    n = 1 << 21
    keys = random_words(rng, n)
    places = np.empty(n, int32)
    places[np.argsort(keys & 255, kind="stable")] = np.arange(n, dtype=int32)
    arguments = (Buffer(keys), Buffer(places), zeros(n, dtype=uint32), int32(n))
    return Case("radix_scatter", "rs", (n,), (256,), arguments)


@case
def reduce_small(rng: Generator) -> Case:
    """Sum up each work-group's numbers in local memory."""
    n = 1 << 17
    arguments = (Buffer(random_floats(rng, n)), zeros(n // 128), Local(512))
    return Case("reduce_small", "red", (n,), (128,), arguments)


@case
def compact_atomic(rng: Generator) -> Case:
    """Keep what is above a threshold, at places that an atomic counter gives."""
    n = 1 << 21
    data, count = Buffer(random_floats(rng, n)), Restored(np.zeros(1, int32))
    arguments = (data, zeros(n), count, float32(0.7), int32(n))
    return Case("compact_atomic", "cmp", (n,), (256,), arguments)


@case
def merge_path(rng: Generator) -> Case:
    """Merge sorted lists, 32 elements per work-item."""
    n, chunk = 1 << 20, 32
    a, b = (Buffer(np.sort(rng.integers(0, 1 << 30, n)).astype(int32)) for _ in range(2))
    arguments = (a, b, zeros(2 * n, dtype=int32), int32(n), int32(chunk))
    return Case("merge_path", "mg", (2 * n // chunk,), (64,), arguments)
