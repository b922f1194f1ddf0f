"""The iteration counts of the Mandelbrot set in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"SIDE": 64, "LIMIT": 100}
RTOL: float = 0.0


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the counts, in single precision as on the device."""
    counts, width, left, bottom, pixel, _ = (np.asarray(value) for value in inputs)
    index = np.arange(int(width), dtype=np.float32)
    re = np.tile(left + index * pixel, index.size)
    im = np.repeat(bottom + index * pixel, index.size)
    x, y, result = np.zeros_like(re), np.zeros_like(re), np.zeros_like(counts)
    inside = np.ones(counts.size, dtype=bool)
    for _ in range(parameters["LIMIT"]):
        inside &= x * x + y * y <= np.float32(4.0)
        result[inside] += 1
        next_x = x * x - y * y + re
        next_y = np.float32(2.0) * x * y + im
        x, y = np.where(inside, next_x, x), np.where(inside, next_y, y)
    return {0: result}
