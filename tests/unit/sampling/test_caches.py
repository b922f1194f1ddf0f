import logging
import os
from pathlib import Path

import pytest

from kernelcast.sampling.runtimes import ensure_caches

_NAMES = (
    "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR", "NUMBA_CACHE_DIR", "MPLCONFIGDIR",
    "PYOPENCL_NO_CACHE",
)  # fmt: skip


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an environment in which nobody has chosen a place for caches."""
    for name in _NAMES:
        monkeypatch.setenv(name, "")  # set first, so that what is set later is taken back
        monkeypatch.delenv(name)


def test_a_folder_that_can_be_written_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed, and no trial is left behind."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert ensure_caches() is None
    assert not any(name in os.environ for name in _NAMES)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("cache", ["/dev/null/x", "/proc/nonexistent"])
def test_what_cannot_be_kept_is_said_once_and_goes_elsewhere(
    cache: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Child processes, which find the choice of their parent, say nothing more."""
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    with caplog.at_level(logging.WARNING):
        folder = ensure_caches()
        assert ensure_caches() is None
    assert folder is not None
    assert all(Path(os.environ[name]).parent == folder for name in _NAMES[:-1])
    assert os.environ["PYOPENCL_NO_CACHE"] == "1"
    assert [one.getMessage().count(cache) for one in caplog.records] == [1]


def test_what_the_user_has_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder named for one runtime is used though the others' cannot be written."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    monkeypatch.setenv("POCL_CACHE_DIR", "/chosen")
    assert ensure_caches() is not None
    assert os.environ["POCL_CACHE_DIR"] == "/chosen"
