"""Write lengths.npy (packet lengths that come in bursts) and table.npy (CRC-32 remainders)."""

from pathlib import Path

import numpy as np

PACKET_COUNT = 131072
POLYNOMIAL = 0xEDB88320


def make_lengths() -> np.ndarray:
    """Draw lengths, in bytes, from bursts of full, small and mixed packets."""
    rng = np.random.default_rng(20240611)
    parts: list[np.ndarray] = []
    total = 0
    while total < PACKET_COUNT:
        burst = int(rng.geometric(1 / 600))
        kind = rng.choice(3, p=[0.45, 0.3, 0.25])
        if kind == 0:
            part = np.full(burst, 2304)
        elif kind == 1:
            part = rng.integers(40, 160, burst)
        else:
            part = rng.integers(40, 2305, burst)
        parts.append(part)
        total += burst
    return np.concatenate(parts)[:PACKET_COUNT].astype(np.uint16)


def make_table() -> np.ndarray:
    """Compute the remainder of every byte value."""
    remainders = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        odd = (remainders & 1).astype(bool)
        remainders = np.where(odd, (remainders >> 1) ^ np.uint32(POLYNOMIAL), remainders >> 1)
    return remainders.astype(np.uint32)


if __name__ == "__main__":
    folder = Path(__file__).parent
    np.save(folder / "lengths.npy", make_lengths())
    np.save(folder / "table.npy", make_table())
