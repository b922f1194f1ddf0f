"""Requests that were understood before: the same bytes ask the same thing."""

from collections.abc import Sequence
from typing import Final

from cachetools import FIFOCache

from kernelcast.service.estimating import Estimating, Wanted

_MOST: Final = 4096
_LONGEST_BYTES: Final = 16 * 1024


class Repeats:
    """What requests for estimates ask, by their bytes and by whether kernels may be run."""

    def __init__(self, estimating: Estimating) -> None:
        self._estimating = estimating
        self._known: FIFOCache[tuple[bytes, bool], Sequence[Wanted]] = FIFOCache(_MOST)

    def remember(self, body: bytes, wanted: Sequence[Wanted], *, may_run: bool) -> None:
        """Remember what a request asks."""
        if len(body) <= _LONGEST_BYTES:
            self._known[body, may_run] = wanted

    def forget(self) -> None:
        """Forget all: the devices may be others now."""
        self._known.clear()

    def answer(self, body: bytes, *, may_run: bool) -> bytes | None:
        """Give the whole answer to a request, if every part of it was kept and still stands."""
        wanted = self._known.get((body, may_run))
        if wanted is None:
            return None
        found = []
        for one in wanted:
            kept = self._estimating.find_kept(one)
            if kept is None:
                return None
            found.append(kept.content)
        return write_answers(found)


def write_answers(contents: Sequence[bytes]) -> bytes:
    """Write answers as one JSON object."""
    return b'{"estimates": [' + b", ".join(contents) + b"]}"
