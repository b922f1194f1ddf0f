"""The alignment recurrence, one cell of all sequences at a time."""

import numpy as np

SMALL: dict[str, int] = {"SEQUENCES": 128}
RTOL: float = 0.0


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the best score of every sequence."""
    residues, query = np.asarray(inputs[0]), np.asarray(inputs[2])
    offsets = np.asarray(inputs[1], dtype=np.int64)[: parameters["SEQUENCES"] + 1]
    substitution = np.asarray(inputs[3], dtype=np.int64).reshape(20, 20)
    gap_open, gap_extend = (int(np.asarray(inputs[i])) for i in (5, 6))
    lengths = np.diff(offsets)
    best = np.zeros(lengths.size, dtype=np.int64)
    h = np.zeros((query.size, lengths.size), dtype=np.int64)
    e = np.zeros_like(h)
    for step in range(int(lengths.max())):
        active = step < lengths
        letters = residues[np.where(active, offsets[:-1] + step, 0)]
        diagonal, left, f = (np.zeros_like(best) for _ in range(3))
        for q, letter in enumerate(query):
            e[q] = np.maximum(e[q] - gap_extend, h[q] - gap_open)
            f = np.maximum(f - gap_extend, left - gap_open)
            matched = diagonal + substitution[letters, letter]
            score = np.maximum(np.maximum(matched, 0), np.maximum(e[q], f))
            diagonal = h[q].copy()
            h[q] = left = score
            best = np.where(active, np.maximum(best, score), best)
    return {4: best.astype(np.int32)}
