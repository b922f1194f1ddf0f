"""Puts devices' copies of a buffer together by what each has changed."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

# Pieces that stay in a core's cache while several copies are compared.
_PIECE_BYTES = 1 << 18
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def merge_changes(
    original: Bytes, copies: Sequence[Bytes], *, element_bytes: int, into: Bytes
) -> int:
    """Merge copies of a buffer.

    Parameters
    ----------
    element_bytes : int
        Size of an element: 1, 2, 4 or 8, a divisor of the sizes.
    into : ndarray of uint8
        Takes the result; may be one of the copies.

    Returns
    -------
    int
        Elements that two devices have changed to different values; of these the result holds
        one of the values.

    Examples
    --------
    >>> before = np.zeros(4, np.uint8)
    >>> one, other = np.array([[7, 0, 0, 5], [0, 8, 0, 6]], np.uint8)
    >>> result = before.copy()
    >>> merge_changes(before, [one, other], element_bytes=1, into=result), result.tolist()
    (1, [7, 8, 0, 6])
    """
    word = _WORDS[element_bytes]
    whole, result = original.view(word), into.view(word)
    views = [one.view(word) for one in copies]
    conflicts = 0
    step = _PIECE_BYTES // element_bytes
    for start in range(0, whole.size, step):
        piece = slice(start, start + step)
        before = whole[piece]
        found = before.copy()
        is_taken: npt.NDArray[np.bool_] | None = None
        for view in views:
            after = view[piece]
            changed = after != before
            if not changed.any():
                continue
            if is_taken is None:
                is_taken = changed
            else:
                conflicts += int((changed & is_taken & (after != found)).sum())
                is_taken = is_taken | changed
            np.copyto(found, after, where=changed)
        result[piece] = found
    return conflicts
