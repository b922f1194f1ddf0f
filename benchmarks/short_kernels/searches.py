"""Hash tables, texts and sorted lists."""

import numpy as np
from numpy import int32, uint8, uint32
from numpy.random import Generator

from short_kernels.cases import Buffer, Case, Restored, case, random_words, zeros


@case
def hash_probe(rng: Generator) -> Case:
    """Look up words in a hash table, half of which are there."""
    n, capacity = 1 << 20, 1 << 21
    keys = rng.choice(np.arange(1, 1 << 28, dtype=uint32)[: 1 << 24], n, replace=False)
    table = np.zeros(capacity, uint32)
    hashes = ((keys.astype(np.uint64) * 2654435761) & 0xFFFFFFFF) >> 11
    for key, first in zip(keys.tolist(), hashes.tolist(), strict=True):
        place = first
        while table[place]:
            place = (place + 1) & (capacity - 1)
        table[place] = key
    asked = np.where(rng.random(n) < 0.5, keys, rng.integers(1, 1 << 28, n)).astype(uint32)
    arguments = (Buffer(table), Buffer(asked), zeros(n, dtype=int32), uint32(capacity - 1))
    return Case("hash_probe", "probe", (n,), (128,), arguments)


@case
def hash_insert(rng: Generator) -> Case:
    """Put words into a hash table by compare-and-swap."""
    n, capacity = 1 << 19, 1 << 20
    keys = rng.permutation(np.arange(1, n + 1, dtype=uint32) * 7)
    table = Restored(np.zeros(capacity, uint32))
    return Case("hash_insert", "ins", (n,), (128,), (table, Buffer(keys), uint32(capacity - 1)))


@case
def string_search(rng: Generator) -> Case:
    """Find a word at every place of a text."""
    n, word = 1 << 22, b"noise at "
    text = Buffer(rng.choice(np.frombuffer(b"etaoin shrdlu", uint8), n))
    count = Restored(np.zeros(1, int32))
    arguments = (text, Buffer(np.frombuffer(word, uint8)), count, int32(n), int32(len(word)))
    return Case("string_search", "ss", (n,), (256,), arguments)


@case
def word_count_lines(rng: Generator) -> Case:
    """Count words, a line per work-item."""
    n = 1 << 16
    begins = np.zeros(n + 1, int32)
    begins[1:] = np.cumsum(rng.geometric(1 / 60, n).astype(int32))
    text = rng.choice(np.frombuffer(b"abcdefg hij k", uint8), int(begins[-1]))
    arguments = (Buffer(text), Buffer(begins), zeros(n, dtype=int32))
    return Case("word_count_lines", "wc", (n,), (64,), arguments)


@case
def crc_blocks(rng: Generator) -> Case:
    """Check blocks of 1,024 bytes through a table."""
    n, block = 1 << 14, 1024
    table = Buffer(random_words(rng, 256))
    data = Buffer(rng.integers(0, 256, n * block).astype(uint8))
    return Case(
        "crc_blocks", "crc", (n,), (64,), (data, table, zeros(n, dtype=uint32), int32(block))
    )


@case
def binary_search(rng: Generator) -> Case:
    """Find numbers in a sorted list."""
    n, asked = 1 << 20, 1 << 19
    numbers = Buffer(np.sort(rng.integers(0, 1 << 30, n)).astype(int32))
    questions = Buffer(rng.integers(0, 1 << 30, asked).astype(int32))
    arguments = (numbers, questions, zeros(asked, dtype=int32), int32(n))
    return Case("binary_search", "bsr", (asked,), (128,), arguments)
