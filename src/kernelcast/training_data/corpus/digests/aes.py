"""The parts of AES (FIPS 197) on arrays of bytes."""

import numpy as np

from kernelcast.training_data.reference import Array

ROUNDS = 10


def double(values: Array) -> Array:
    """Multiply by x in the field of 256 elements."""
    doubled: Array = (values.astype(np.int64) << 1) ^ np.where(values >= 128, 0x11B, 0)
    return doubled.astype(np.uint8)


def make_substitution() -> Array:
    """Give the substitution of all bytes: the inverse in the field, then an affine map of bits."""
    powers = np.ones(255, dtype=np.uint8)
    for i in range(1, 255):
        powers[i] = powers[i - 1] ^ double(powers[i - 1 : i])[0]
    inverse = np.zeros(256, dtype=np.int64)
    inverse[powers] = powers[-np.arange(255) % 255]
    turned = [(inverse << n | inverse >> (8 - n)) & 255 for n in range(5)]
    substitution: Array = np.bitwise_xor.reduce(turned, axis=0) ^ 0x63
    return substitution.astype(np.uint8)


def expand_key(key: Array) -> Array:
    """Give the round keys of a key of 16 bytes, of shape (11, 4, 4): round, column, row."""
    substitution = make_substitution()
    columns = list(key.reshape(4, 4))
    constant = np.array([1], dtype=np.uint8)
    for i in range(4, 4 * (ROUNDS + 1)):
        column = columns[-1]
        if i % 4 == 0:
            column = substitution[np.roll(column, -1)]
            column[0] ^= constant[0]
            constant = double(constant)
        columns.append(columns[-4] ^ column)
    return np.stack(columns).reshape(ROUNDS + 1, 4, 4)


def encrypt(blocks: Array, round_keys: Array) -> Array:
    """Encrypt blocks of shape (n, 4, 4): block, column, row."""
    substitution = make_substitution()
    rows = np.arange(4)
    shifted = (np.arange(4)[:, np.newaxis] + rows) % 4
    state: Array = blocks ^ round_keys[0]
    for number, key in enumerate(round_keys[1:], start=1):
        state = substitution[state][:, shifted, rows]
        if number < ROUNDS:
            whole = np.bitwise_xor.reduce(state, axis=2)[:, :, np.newaxis]
            state = state ^ whole ^ double(state ^ np.roll(state, -1, axis=2))
        state = state ^ key
    return state
