"""The parts in NumPy and SciPy, all rows at once."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from kernelcast.training_data.reference import Array, Reference, Value


def attend(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the values mixed by the softmax of the scores."""
    tokens = parameters["TOKENS"]
    query, key, value = (
        np.asarray(one, dtype=np.float64).reshape(-1, tokens, 32) for one in values[:3]
    )
    scores = query @ key.transpose(0, 2, 1) * float(np.asarray(values[4]))
    scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
    mixed = special.softmax(scores, axis=2) @ value
    return {3: mixed.reshape(-1, 4).astype(np.float32)}


def normalise(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return rows of mean 0 and variance 1, scaled and shifted."""
    given, gain, shift = (np.asarray(value, dtype=np.float64) for value in values[:3])
    rows = given.reshape(parameters["ROWS"], -1)
    normal = rows - rows.mean(axis=1, keepdims=True)
    normal /= np.sqrt(rows.var(axis=1, keepdims=True) + 1e-5)
    return {3: (normal * gain + shift).astype(np.float32)}


def activate(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return GELU of the sums with their bias, as a logistic function."""
    sums, bias = (np.asarray(value, dtype=np.float64) for value in values[:2])
    x = sums.reshape(parameters["ROWS"], -1) + bias.ravel()
    share = special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    return {2: (x * share).astype(np.float32)}


def embed(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the sum of both tables' rows."""
    words = np.asarray(values[0])
    table, positions = (np.asarray(value).reshape(-1, parameters["WIDTH"]) for value in values[1:3])
    places = np.arange(words.size) % parameters["CONTEXT"]
    return {3: table[words] + positions[places]}


def turn(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return all pairs as complex numbers times a power of i."""
    given = np.asarray(values[0], dtype=np.float64).reshape(parameters["TOKENS"], -1, 2)
    pairs = int(np.asarray(values[2]))
    falling = np.exp2(-float(np.asarray(values[4])) * (np.arange(given.shape[1]) % pairs) / pairs)
    angles = np.outer(np.arange(len(given)) % parameters["CONTEXT"], falling)
    turned = (given[..., 0] + 1j * given[..., 1]) * np.exp(1j * angles)
    return {1: np.stack([turned.real, turned.imag], axis=2).astype(np.float32)}


def multiply_4bit(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the product with the weights unpacked."""
    words, scales, x = (np.asarray(value) for value in values[:3])
    nibbles = words[:, np.newaxis] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
    weights = nibbles.reshape(-1, 32).astype(np.float64) - 8
    matrix = (weights * scales.astype(np.float64)[:, np.newaxis]).reshape(parameters["ROWS"], -1)
    return {3: (matrix @ x.ravel().astype(np.float64)).astype(np.float32)}


REFERENCES = {
    "attention": Reference(expected=attend, small={"HEADS": 3, "TOKENS": 128}, tolerance=1e-4),
    "layer_norm": Reference(expected=normalise, small={"ROWS": 20}, tolerance=1e-4),
    "gelu": Reference(expected=activate, small={"ROWS": 5}, tolerance=1e-4),
    "embedding": Reference(expected=embed, small={"TOKENS": 200, "WORDS": 1000, "CONTEXT": 64}),
    # an angle of thousands has lost three of its digits
    "rotary": Reference(expected=turn, small={"TOKENS": 300}, tolerance=2e-3),
    "gemv_4bit": Reference(
        expected=multiply_4bit, small={"ROWS": 50, "COLUMNS": 1024}, tolerance=1e-4
    ),
}
