"""A text with patterns in clusters, and words of uneven length."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

FACTOR = 16777619
PATTERN = 16
FILTER_BITS = 14
LONGEST = 2048
ALPHABET = np.frombuffer(b"ACGT", dtype=np.uint8)


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write what the kernel needs that has these parameters; return LETTERS where it has that."""
    rng = np.random.default_rng(26)
    if "CHUNKS" in parameters:
        _write_text(rng, 64 * parameters["CHUNKS"] + 15, parameters["PATTERNS"], folder)
    elif "WORDS" in parameters:
        return {"LETTERS": _write_words(rng, parameters, folder)}
    return {}


def make_query(length: int) -> Array:
    """Give the word that all words are compared with."""
    return np.random.default_rng(27).choice(ALPHABET, size=length)


def _write_text(rng: np.random.Generator, length: int, count: int, folder: Path) -> None:
    text = ALPHABET[rng.integers(0, 4, size=length, dtype=np.uint8)]
    patterns = rng.choice(ALPHABET, size=(count, PATTERN))
    powers = [pow(FACTOR, PATTERN - 1 - i, 2**32) for i in range(PATTERN)]
    hashes = (patterns * np.array(powers, dtype=np.uint64)).sum(axis=1).astype(np.uint32)
    order = np.argsort(hashes)
    hashes, patterns = hashes[order], patterns[order]
    # places of patterns: most in a few regions, and they may cover each other
    places = length // 64
    centres = rng.random(16)[rng.integers(0, 16, size=places)]
    centres = (centres + rng.normal(0.0, 0.01, size=places)) % 1.0
    begins = (centres * (length - PATTERN)).astype(np.int64)
    text[begins[:, np.newaxis] + np.arange(PATTERN)] = patterns[rng.integers(0, count, size=places)]
    bits = np.zeros(2**FILTER_BITS, dtype=bool)
    bits[hashes >> (32 - FILTER_BITS)] = True
    np.save(folder / "text.npy", text)
    np.save(folder / "hashes.npy", hashes)
    np.save(folder / "patterns.npy", patterns.reshape(-1))
    np.save(
        folder / "filter.npy", np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)
    )


def _write_words(rng: np.random.Generator, parameters: Mapping[str, int], folder: Path) -> int:
    lengths = np.minimum(rng.lognormal(3.5, 0.8, size=parameters["WORDS"]) + 1, LONGEST).astype(
        np.int64
    )
    begins = np.concatenate([[0], np.cumsum(lengths)])
    letters = ALPHABET[rng.integers(0, 4, size=begins[-1], dtype=np.uint8)]
    np.save(folder / "letters.npy", letters)
    np.save(folder / "begins.npy", begins.astype(np.uint32))
    bits = np.zeros(256, dtype=np.uint32)
    query = make_query(parameters["QUERY"])
    np.bitwise_or.at(bits, query, np.uint32(1) << np.arange(query.size, dtype=np.uint32))
    np.save(folder / "query_bits.npy", bits)
    return int(begins[-1])
