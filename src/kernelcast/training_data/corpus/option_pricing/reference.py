"""All paths at once, with the kernels' generators."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def price_asian(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the sums of payoffs and of their squares for each work-group."""
    drift, volatility, strike = (float(np.asarray(value)) for value in values[2:5])
    seed = np.uint32(np.asarray(values[5]))
    path = np.arange(parameters["PATHS"], dtype=np.uint32)
    state = [
        path * np.uint32(1099087573) + seed,
        path ^ np.uint32(0x9E3779B9),
        path + np.uint32(0x7F4A7C15),
        np.full_like(path, seed),
    ]
    price_log = np.zeros(path.size)
    total = np.zeros(path.size)
    for _ in range(parameters["STEPS"] // 2):
        first, second = (_draw(state) >> np.uint32(9) for _ in range(2))
        radius = np.sqrt(-2 * np.log((first + 0.5) / 2**23))
        angle = 2 * np.pi * second / 2**23
        for normal in (radius * np.cos(angle), radius * np.sin(angle)):
            price_log += drift + volatility * normal
            total += np.exp(price_log)
    payoff = np.maximum(total / parameters["STEPS"] - strike, 0).reshape(-1, parameters["LOCAL0"])
    sums = np.stack([payoff.sum(axis=1), (payoff**2).sum(axis=1)], axis=1)
    return {0: sums.astype(np.float32)}


def _draw(state: list[Array]) -> Array:
    """Give the next number and move the state on."""
    mixed = state[0] ^ (state[0] << np.uint32(11))
    last = state[3]
    state[:3] = state[1:]
    state[3] = last ^ (last >> np.uint32(19)) ^ mixed ^ (mixed >> np.uint32(8))
    return state[3]


def follow_to_barrier(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return where each path ends, and after how many steps."""
    path = np.arange(parameters["PATHS"], dtype=np.uint32)
    state = (path * np.uint32(2654435761)) ^ np.uint32(np.asarray(values[4]))
    state[state == 0] = 1
    words = []
    for _ in range(8 + parameters["WORDS"]):
        for shift in (13, -17, 5):
            amount = np.uint32(abs(shift))
            state = state ^ (state << amount if shift > 0 else state >> amount)
        words.append(state.astype("<u4"))
    bits = np.unpackbits(np.stack(words[8:], axis=1).view(np.uint8), axis=1, bitorder="little")
    places = np.cumsum(2 * bits.astype(np.int64) - 1, axis=1)
    is_met = places >= parameters["BARRIER"]
    last = np.where(is_met.any(axis=1), is_met.argmax(axis=1), bits.shape[1] - 1)
    ends = np.take_along_axis(places, last[:, np.newaxis], axis=1)[:, 0]
    return {0: ends.astype(np.int16), 1: (last + 1).astype(np.uint16)}


REFERENCES = {
    "asian_option": Reference(expected=price_asian, small={"PATHS": 1024}, tolerance=1e-3),
    "barrier_option": Reference(expected=follow_to_barrier, small={"PATHS": 1024}),
}
