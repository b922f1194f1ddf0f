"""Lengths of messages; round keys and the table of AES."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.corpus.digests.aes import double, expand_key, make_substitution

LONGEST = 256


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write begins.npy and return LENGTH, in blocks; or write round_keys.npy and table.npy."""
    if "MESSAGES" in parameters:
        rng = np.random.default_rng(256)
        lengths = 1.0 + rng.pareto(1.2, size=parameters["MESSAGES"])
        ends = np.cumsum(np.minimum(lengths, LONGEST).astype(np.uint32), dtype=np.uint32)
        np.save(folder / "begins.npy", np.concatenate([[0], ends]).astype(np.uint32))
        return {"LENGTH": int(ends[-1])}
    round_keys = expand_key(np.arange(16, dtype=np.uint8))
    np.save(folder / "round_keys.npy", round_keys.reshape(-1).view("<u4").astype(np.uint32))
    once = make_substitution()
    twice = double(once)
    table = np.stack([twice, once, once, once ^ twice], axis=1)
    np.save(folder / "table.npy", table.reshape(-1).view("<u4").astype(np.uint32))
    return {}
