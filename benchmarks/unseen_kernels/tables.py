"""Databases and graphs."""

import numpy as np
from numpy import float64, int32, int64, uint8, uint16, uint32
from numpy.random import Generator

from unseen_kernels.cases import Buffer, Case, Local, Restored, case, random_words, zeros


@case
def q6_revenue(rng: Generator) -> Case:
    """Add up revenue of 12 million rows that pass filters."""
    rows, items, unit = 12_000_000, 64 * 128, 128
    shipped = np.sort(rng.integers(8000, 10600, rows)).astype(int32)
    columns = (
        Buffer(shipped), Buffer(rng.integers(0, 11, rows).astype(uint8)),
        Buffer(rng.integers(1, 51, rows).astype(uint8)), Buffer(rng.integers(10**5, 10**7, rows)),
    )  # fmt: skip
    numbers = (uint32(rows), int32(8766), int32(9131))
    arguments = (*columns, zeros(items // unit, dtype=int64), Local(8 * unit), *numbers)
    return Case("q6_revenue", "q6", (items,), (unit,), arguments)


@case
def group_by(rng: Generator) -> Case:
    """Count and add up 2 million rows in 512 groups of uneven size."""
    rows = 1 << 21
    keys = np.minimum(rng.zipf(1.3, rows) - 1, 511).astype(uint16)
    values = Buffer(rng.integers(0, 100, rows).astype(int32))
    results = (Restored(np.zeros(512, uint32)), Restored(np.zeros(512, int32)))
    return Case(
        "group_by", "group_by", (16384,), (128,), (Buffer(keys), values, *results, int32(rows))
    )


@case
def chain_join(rng: Generator) -> Case:
    """Join 400,000 rows with 200,000 through chains."""
    built, probed, heads = 200_000, 400_000, 1 << 17
    keys = rng.integers(0, 150_000, built).astype(uint32)
    table = np.zeros(built, [("key", uint32), ("next", int32)])
    table["key"] = keys
    buckets = ((keys.astype(np.uint64) * 0x9E3779B1 & 0xFFFFFFFF) >> 7) & (heads - 1)
    first = np.full(heads, -1, int32)
    for place, bucket in enumerate(buckets.tolist()):
        table["next"][place] = first[bucket]
        first[bucket] = place
    asked = Buffer(rng.integers(0, 300_000, probed).astype(uint32))
    arguments = (asked, Buffer(first), Buffer(table), zeros(probed, dtype=int32), uint32(heads - 1))
    return Case("chain_join", "chain_join", (probed,), (64,), arguments)


@case
def band_join(rng: Generator) -> Case:
    """Join 16,384 events with 32,768 others that are close in time."""
    left, right = 16384, 32768
    times = (Buffer(rng.random(left)), Buffer(rng.random(right)))
    arguments = (*times, zeros(left, dtype=int32), int32(right), float64(1e-3))
    return Case("band_join", "band_join", (left,), (256,), arguments)


@case
def label_propagation(rng: Generator) -> Case:
    """Find communities of 65,536 vertices with 2 to 60 neighbours."""
    n = 1 << 16
    degrees = np.minimum(rng.zipf(1.9, n) + 1, 60)
    rows = np.concatenate([[0], np.cumsum(degrees)]).astype(int32)
    near = np.repeat(np.arange(n), degrees) + rng.integers(-500, 501, rows[-1])
    labels = Buffer((np.arange(n) // 16).astype(int32))
    arguments = (Buffer(rows), Buffer((near % n).astype(int32)), labels, zeros(n, dtype=int32))
    return Case("label_propagation", "propagate", (n,), (64,), arguments)


@case
def btree_lookup(rng: Generator) -> Case:
    """Find 300,000 keys in a tree of four levels."""
    asked, levels = 300_000, 4
    nodes = np.zeros((sum(17**level for level in range(levels)), 16), uint32)
    spans = np.array([[0.0, 1.0]])
    begin = 0
    for level in range(levels):
        parts = spans[:, :1] + (spans[:, 1:] - spans[:, :1]) * np.arange(18) / 17
        end = begin + 17**level
        nodes[begin:end] = parts[:, 1:17] * 0xFFFFFFFF
        spans = np.stack([parts[:, :-1].ravel(), parts[:, 1:].ravel()], axis=1)
        begin = end
    arguments = (
        Buffer(nodes),
        Buffer(random_words(rng, asked)),
        zeros(asked, dtype=uint32),
        int32(levels),
    )
    return Case("btree_lookup", "btree", (asked,), None, arguments)
