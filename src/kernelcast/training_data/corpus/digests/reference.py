"""Digests by Python's own library, AES byte by byte."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from kernelcast.training_data.corpus.digests.aes import encrypt, expand_key
from kernelcast.training_data.reference import Array, Reference, Value


def digest(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the digest of each message."""
    words, begins = (np.asarray(value) for value in values[:2])
    text = words.astype("<u4").tobytes()
    ends = (64 * begins.astype(np.int64)).tolist()
    digests = [hashlib.sha256(text[begin:end]).digest() for begin, end in pairwise(ends)]
    return {2: np.frombuffer(b"".join(digests), dtype="<u4").astype(np.uint32)}


def encrypt_counters(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the blocks with the encrypted counters added."""
    plain = np.asarray(values[0]).reshape(-1, 4)
    counters = np.zeros((parameters["BLOCKS"], 4), dtype="<u4")
    counters[:, 0] = np.asarray(values[4])
    counters[:, 3] = np.arange(parameters["BLOCKS"])
    round_keys = expand_key(np.arange(16, dtype=np.uint8))
    stream = encrypt(counters.view(np.uint8).reshape(-1, 4, 4), round_keys)
    stream = np.ascontiguousarray(stream).reshape(-1, 16)
    return {1: plain ^ stream.view("<u4").astype(np.uint32)}


REFERENCES = {
    "sha256": Reference(expected=digest, small={"MESSAGES": 512}),
    "aes_ctr": Reference(expected=encrypt_counters, small={"BLOCKS": 1024}),
}
