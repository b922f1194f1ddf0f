"""Checksums by the standard library's CRC-32."""

import zlib

import numpy as np

SMALL: dict[str, int] = {"PACKETS": 1024}
RTOL: float = 0.0


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the checksum of every packet."""
    slots = np.asarray(inputs[0]).reshape(-1, 2304)
    lengths = np.asarray(inputs[1])
    checksums = [zlib.crc32(slot[:n].tobytes()) for slot, n in zip(slots, lengths, strict=False)]
    return {3: np.array(checksums, dtype=np.uint32)}
