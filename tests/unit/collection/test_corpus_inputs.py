import os
import time
from pathlib import Path

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


def test_oldest_inputs_make_room(tmp_path: Path) -> None:
    """Drops what was used longest ago once all take more than they may."""
    oldest = _get(tmp_path, 2_001, age_s=_LONG_AGO_S + 1)
    older = _get(tmp_path, 2_002, age_s=_LONG_AGO_S)
    newest = _get(tmp_path, 2_003)
    assert [one.is_dir() for one in (oldest, older, newest)] == [False, True, True]


def test_use_keeps_inputs(tmp_path: Path) -> None:
    """Counts the last use, not the making."""
    first = _get(tmp_path, 2_001, age_s=_LONG_AGO_S)
    second = _get(tmp_path, 2_002, age_s=_LONG_AGO_S)
    _get(tmp_path, 2_001)
    _get(tmp_path, 2_003)
    assert first.is_dir()
    assert not second.is_dir()


def test_what_was_just_asked_for_stays(tmp_path: Path) -> None:
    """Keeps inputs that somebody may be about to read, however large."""
    assert _get(tmp_path, 2_001, most=1).is_dir()
    _get(tmp_path, 2_002, most=1)
    assert _get(tmp_path, 2_001, most=1).is_dir()


def test_leftovers_of_killed_processes_go(tmp_path: Path) -> None:
    """Drops unfinished folders of long ago, and leaves those in the making alone."""
    left, busy = tmp_path / "sums" / "making-old", tmp_path / "sums" / "making-new"
    for one in (left, busy):
        one.mkdir(parents=True)
        (one / "x.npy").touch()
    when_s = time.time() - _LONG_AGO_S
    os.utime(left, (when_s, when_s))
    _get(tmp_path, 1)
    assert not left.is_dir()
    assert busy.is_dir()
