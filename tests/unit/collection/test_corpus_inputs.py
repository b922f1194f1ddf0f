import os
import time
from pathlib import Path

import pytest

from kernelcast.collection.corpus_problems import keep_inputs

_LONG_AGO_S = 10_000


def _make(parameters: dict[str, int], folder: Path) -> dict[str, int]:
    (folder / "x.npy").write_bytes(bytes(parameters["BYTES"]))
    return {"FOUND": parameters["BYTES"] + 1}


def _get(cache: Path, size: int, *, age_s: float = 0.0, most: int = 5_000) -> Path:
    folder, made = keep_inputs(cache, "sums", {"BYTES": size}, b"", _make, most_bytes=most)
    assert made == {"FOUND": size + 1}
    when_s = time.time() - age_s
    os.utime(folder, (when_s, when_s))
    return folder


def test_inputs_used_longest_ago_make_room(tmp_path: Path) -> None:
    """Once all take more than they may; the last use counts, not the making."""
    first = _get(tmp_path, 2_001, age_s=_LONG_AGO_S)
    second = _get(tmp_path, 2_002, age_s=_LONG_AGO_S)
    _get(tmp_path, 2_001)
    newest = _get(tmp_path, 2_003)
    assert [one.is_dir() for one in (first, second, newest)] == [True, False, True]
    # What was just asked for may be about to be read: it stays, however large.
    _get(tmp_path, 2_004, most=1)
    assert first.is_dir()


def test_leftovers_go(tmp_path: Path) -> None:
    """Drops what an error has cut short and what a process left long ago, nothing in the making."""

    def fail(_: object, folder: Path) -> dict[str, int]:
        (folder / "x.npy").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_inputs(tmp_path, "sums", {"BYTES": 1}, b"", fail, most_bytes=5_000)
    assert list((tmp_path / "sums").iterdir()) == []
    left, busy = tmp_path / "sums" / "making-old", tmp_path / "sums" / "making-new"
    for one in (left, busy):
        one.mkdir()
        (one / "x.npy").touch()
    when_s = time.time() - _LONG_AGO_S
    os.utime(left, (when_s, when_s))
    _get(tmp_path, 1)
    assert not left.is_dir()
    assert busy.is_dir()
