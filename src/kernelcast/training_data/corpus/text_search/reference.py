"""Base64 by Python's library, matches by looking at whole windows, distances by a table."""

import base64
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from kernelcast.training_data.corpus.text_search.inputs import PATTERN, make_query
from kernelcast.training_data.reference import Array, Reference, Value


def encode(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the characters."""
    characters = base64.b64encode(np.asarray(values[0]).astype("<u4").tobytes())
    return {1: np.frombuffer(characters, dtype="<u4").astype(np.uint32)}


def count_matches(values: Sequence[Value], _parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return how many patterns begin in each 64 bytes."""
    text, patterns = (np.asarray(values[index]) for index in (0, 2))
    windows = np.ascontiguousarray(sliding_window_view(text, PATTERN)).view(f"S{PATTERN}")
    is_match = np.isin(windows, patterns.view(f"S{PATTERN}"))
    return {4: is_match.reshape(-1, 64).sum(axis=1).astype(np.uint32)}


def measure_distances(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the distances of all words, whose tables are filled together."""
    letters, begins = (np.asarray(value) for value in values[:2])
    query = make_query(parameters["QUERY"])
    lengths = np.diff(begins.astype(np.int64))
    rows = np.arange(query.size + 1)
    # the last column so far of each word's table
    column = np.tile(rows, (lengths.size, 1))
    for i in range(int(lengths.max())):
        is_on = np.flatnonzero(i < lengths)
        before = column[is_on]
        differs = letters[begins[is_on] + i][:, np.newaxis] != query
        after = np.minimum(before[:, 1:] + 1, before[:, :-1] + differs)
        after = np.concatenate([np.full((len(is_on), 1), i + 1), after], axis=1)
        # insertions reach down: the least of all above plus the way from there
        column[is_on] = np.minimum.accumulate(after - rows, axis=1) + rows
    return {3: column[:, -1].astype(np.uint32)}


REFERENCES = {
    "base64": Reference(expected=encode, small={"PIECES": 1024}),
    "rabin_karp": Reference(expected=count_matches, small={"CHUNKS": 512}),
    "edit_distance": Reference(expected=measure_distances, small={"WORDS": 512}),
}
