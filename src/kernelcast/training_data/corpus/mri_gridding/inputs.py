"""Samples of a stack of radial trajectories, in the order of measurement or of their tiles.

Every spoke passes through the axis of the volume, so that samples crowd there; along the axis the
stack is denser in some places than in others.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelcast.training_data.reference import Array

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
PER_SPOKE = 256
SIDE = 64
TILE = np.array([8, 4, 4])
BLOCK = 1024
DIGITS = 16
SHIFT = 4
KEYS = 2048


def make(parameters: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Write what the kernel needs that has these parameters; sort needs nothing."""
    if "SPOKES" in parameters:
        np.save(folder / "samples.npy", _make_samples(parameters["SPOKES"], SIDE))
    elif "SAMPLES" in parameters:
        samples = _make_samples(parameters["SAMPLES"] // PER_SPOKE, SIDE)
        order = np.argsort(find_tiles(samples).astype(np.uint16), kind="stable")
        np.save(folder / "order.npy", order.astype(np.uint32))
    elif "BLOCKS" in parameters:
        _write_blocks(parameters["BLOCKS"], folder)
    elif "LAYERS" in parameters:
        _write_sorted(parameters["LAYERS"], folder)
    return {}


def _make_samples(spokes: int, depth: int) -> Array:
    """Give x, y, z in cells and the density correction, of shape (spokes * 256, 4)."""
    number = np.arange(spokes)
    angle = np.pi * (number * GOLDEN % 1.0)
    height = depth * (number * np.sqrt(2.0) % 1.0)
    height += 1.2 * np.sin(2.0 * np.pi * height / 16.0)
    radius = np.linspace(-0.49, 0.49, PER_SPOKE) * SIDE
    samples = np.empty((spokes, PER_SPOKE, 4), dtype=np.float32)
    samples[..., 0] = SIDE / 2 + np.cos(angle)[:, None] * radius
    samples[..., 1] = SIDE / 2 + np.sin(angle)[:, None] * radius
    samples[..., 2] = np.clip(height, 0.0, depth - 0.01)[:, None]
    samples[..., 3] = np.abs(radius) / SIDE + 0.01
    return samples.reshape(-1, 4)


def find_tiles(samples: Array) -> Array:
    """Give the number of each sample's tile; tiles are numbered along x, then y, then z."""
    x, y, z = (samples[:, :3] // TILE).astype(np.int64).T
    tiles: Array = (z * (SIDE // TILE[1]) + y) * (SIDE // TILE[0]) + x
    return tiles


def _write_blocks(blocks: int, folder: Path) -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(0, KEYS, size=(blocks, BLOCK), dtype=np.uint32)
    digits = (keys >> SHIFT).astype(np.uint8) % DIGITS
    keys = np.take_along_axis(keys, np.argsort(digits, axis=1, kind="stable"), axis=1)
    slots = np.arange(blocks)[:, None] + digits.astype(np.int64) * blocks
    counts = np.bincount(slots.reshape(-1), minlength=blocks * DIGITS)
    np.save(folder / "block_keys.npy", keys.reshape(-1))
    np.save(folder / "digit_counts.npy", counts.astype(np.uint32))
    np.save(folder / "digit_starts.npy", (np.cumsum(counts) - counts).astype(np.uint32))


def _write_sorted(layers: int, folder: Path) -> None:
    samples = _make_samples(layers * 16, layers * int(TILE[2]))
    tiles = find_tiles(samples)
    counts = np.bincount(tiles, minlength=layers * 128)
    starts = np.concatenate([[0], np.cumsum(counts)])
    np.save(folder / "sorted_samples.npy", samples[np.argsort(tiles, kind="stable")])
    np.save(folder / "tile_starts.npy", starts.astype(np.uint32))
