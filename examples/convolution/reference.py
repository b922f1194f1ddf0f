"""The image filter in NumPy."""

import numpy as np

SMALL: dict[str, int] = {"WIDTH": 100, "HEIGHT": 60}
RTOL: float = 1e-5


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the filtered image; places outside it repeat its edge."""
    image, weights, result, _, _ = (np.asarray(value) for value in inputs)
    width, height, radius = (parameters[name] for name in ("WIDTH", "HEIGHT", "RADIUS"))
    side = 2 * radius + 1
    padded = np.pad(image.reshape(height, width), radius, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side))
    filtered = np.einsum("yxij,ij->yx", windows, weights.reshape(side, side))
    return {2: filtered.astype(result.dtype).reshape(result.shape)}
