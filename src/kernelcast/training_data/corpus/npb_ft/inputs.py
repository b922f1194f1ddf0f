"""Roots of unity for the transforms."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write roots_single.npy and roots_double.npy for a transform; others need nothing."""
    length = parameters.get("LENGTH")
    if length is not None:
        roots = np.exp(-2j * np.pi * np.arange(length // 2) / length)
        pairs = np.stack([roots.real, roots.imag], axis=1)
        np.save(folder / "roots_double.npy", pairs)
        np.save(folder / "roots_single.npy", pairs.astype(np.float32))
    return {}
