"""Words of a text, whose frequency follows Zipf's law."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write words.npy for the kernel that needs it; nothing follows from it."""
    if "WORDS" in parameters:
        rng = np.random.default_rng(3)
        words = parameters["WORDS"]
        shares = np.cumsum(1.0 / np.arange(1, words + 1))
        ranks = np.searchsorted(shares / shares[-1], rng.random(parameters["TOKENS"]))
        # numbers of words do not follow their ranks
        np.save(folder / "words.npy", rng.permutation(words)[ranks].astype(np.int32))
    return {}
