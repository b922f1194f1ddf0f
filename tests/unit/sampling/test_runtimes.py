import logging
import os
import stat
import sys
from pathlib import Path

import pytest

from kernelcast.sampling import runtimes
from kernelcast.sampling.runtimes import VENDORS_VARIABLE, ensure_caches, ensure_vendors


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an environment of Python without runtimes, beside a system without runtimes."""
    prefix = tmp_path / "prefix"
    for folder in (prefix / "lib", prefix / "etc" / "OpenCL" / "vendors", tmp_path / "system"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(runtimes, "SYSTEM_VENDORS", tmp_path / "system")
    monkeypatch.setattr(runtimes, "DRIVER_FOLDERS", ())
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # set first, so that whatever ensure_vendors sets is taken back afterwards
    monkeypatch.setenv(VENDORS_VARIABLE, "")
    monkeypatch.delenv(VENDORS_VARIABLE)
    return prefix


def embed(prefix: Path, name: str, *, content: str | None = None, library: bool = True) -> Path:
    """Install a runtime the way a wheel does; give its library's true path."""
    path = prefix / "lib" / f"lib{name}.so"
    if library:
        path.write_bytes(b"\x7fELF")
    icd = prefix / "etc" / "OpenCL" / "vendors" / f"{name}.icd"
    icd.write_text(f"/build/machine/lib/lib{name}.so\n" if content is None else content)
    return path


def listed(folder: Path | None) -> dict[str, str]:
    assert folder is not None
    return {icd.name: icd.read_text().strip() for icd in folder.glob("*.icd")}


def test_the_systems_runtimes_stay_visible(prefix: Path, tmp_path: Path) -> None:
    """Lists the system's runtimes beside the embedded one, since the variable hides them, and the
    library that is there where a wheel's file names one that is not."""
    library = embed(prefix, "cpu")
    (tmp_path / "system" / "pocl.icd").write_text("libpocl.so.2\n")
    (tmp_path / "system" / "folder.icd").mkdir()
    assert listed(ensure_vendors()) == {
        "embedded-cpu.icd": str(library), "system-pocl.icd": "libpocl.so.2"
    }  # fmt: skip


def test_a_driver_without_its_file_is_found(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names the OpenCL of a driver that a container mounts, unless the system names it."""
    library = tmp_path / "driver" / "libnvidia-opencl.so.1"
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF")
    monkeypatch.setattr(runtimes, "DRIVER_FOLDERS", (str(tmp_path / "none"), str(library.parent)))
    assert listed(ensure_vendors()) == {"driver-nvidia.icd": str(library)}
    assert library in runtimes.list_runtime_files()
    monkeypatch.delenv(VENDORS_VARIABLE)
    (tmp_path / "system" / "nvidia.icd").write_text(f"{library.name}\n")
    assert ensure_vendors() is None


def test_confined_processes_can_read_the_folder(prefix: Path) -> None:
    """Is open to other users whatever the umask: confined processes of root's service are one."""
    embed(prefix, "cpu")
    before = os.umask(0o077)
    try:
        folder = ensure_vendors()
    finally:
        os.umask(before)
    assert folder is not None
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (folder, *folder.iterdir())]
    assert modes == [0o755, 0o644]


@pytest.mark.parametrize("content", [None, "", "\n", ".", "/", "/" + "a" * 300])
def test_what_is_no_library_is_left_out(prefix: Path, content: str | None) -> None:
    """Leaves out a runtime whose file names nothing that is there, or a folder."""
    library = embed(prefix, "cpu")
    embed(prefix, "odd", content=content, library=False)
    assert listed(ensure_vendors()) == {"embedded-cpu.icd": str(library)}


def test_the_loader_is_left_alone(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no runtime is embedded, or the caller has chosen runtimes."""
    (tmp_path / "system" / "pocl.icd").write_text("libpocl.so.2\n")
    assert ensure_vendors() is None
    assert VENDORS_VARIABLE not in os.environ
    assert not (tmp_path / "cache").exists()
    embed(prefix, "cpu")
    monkeypatch.setenv(VENDORS_VARIABLE, "/chosen/by/hand")
    assert ensure_vendors() is None
    assert os.environ[VENDORS_VARIABLE] == "/chosen/by/hand"


def test_the_folder_follows_what_is_installed(prefix: Path) -> None:
    """Forgets a runtime that was removed and finds one that came, in the same folder."""
    embed(prefix, "old")
    first = ensure_vendors()
    (prefix / "etc" / "OpenCL" / "vendors" / "old.icd").unlink()
    library = embed(prefix, "new")
    assert ensure_vendors() == first
    assert listed(first) == {"embedded-new.icd": str(library)}


def test_a_cache_that_cannot_be_written_is_no_crash(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes a temporary folder then; leaves the loader alone where that cannot be made either."""
    embed(prefix, "cpu")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = ensure_vendors()
    assert "embedded-cpu.icd" in listed(folder)
    assert os.environ[VENDORS_VARIABLE] == str(folder)
    monkeypatch.delenv(VENDORS_VARIABLE)
    monkeypatch.setattr(runtimes.tempfile, "tempdir", str(tmp_path / "file"))
    assert ensure_vendors() is None
    assert VENDORS_VARIABLE not in os.environ


_CACHES = (
    "POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR", "NUMBA_CACHE_DIR", "MPLCONFIGDIR",
    "PYOPENCL_NO_CACHE",
)  # fmt: skip


def test_caches_that_cannot_be_kept_go_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Says so once: child processes find the choice of their parent. A folder that can be written
    is left as it is, and one that the user has chosen for a runtime stays."""
    for name in _CACHES:
        monkeypatch.setenv(name, "")  # set first, so that what is set later is taken back
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert ensure_caches() is None
    assert not any(name in os.environ for name in _CACHES)
    assert list((tmp_path / "cache").iterdir()) == []
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    monkeypatch.setenv("POCL_CACHE_DIR", "/chosen")
    with caplog.at_level(logging.WARNING):
        folder = ensure_caches()
        assert ensure_caches() is None
    assert folder is not None
    assert os.environ["POCL_CACHE_DIR"] == "/chosen"
    assert all(Path(os.environ[name]).parent == folder for name in _CACHES[1:-1])
    assert os.environ["PYOPENCL_NO_CACHE"] == "1"
    assert [one.getMessage().count("/dev/null/x") for one in caplog.records] == [1]
