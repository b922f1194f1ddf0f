import os
import stat
import sys
from pathlib import Path

import pytest

from kernelcast.sampling import runtimes
from kernelcast.sampling.runtimes import VENDORS_VARIABLE, ensure_vendors


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
    """Give what the loader would read in a folder: file name and library."""
    assert folder is not None
    return {icd.name: icd.read_text().strip() for icd in folder.glob("*.icd")}


def test_paths_of_wheels_are_corrected(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the library that is there where a wheel's file names one that is not."""
    library = embed(prefix, "cpu")
    folder = ensure_vendors()
    assert listed(folder) == {"embedded-cpu.icd": str(library)}
    assert runtimes.os.environ[VENDORS_VARIABLE] == str(folder)


def test_the_systems_runtimes_stay_visible(prefix: Path, tmp_path: Path) -> None:
    """Lists the system's runtimes beside the embedded one, since the variable hides them."""
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


def test_missing_libraries_are_left_out(prefix: Path) -> None:
    """Leaves out a runtime whose library is nowhere to be found."""
    library = embed(prefix, "cpu")
    embed(prefix, "gone", library=False)
    assert listed(ensure_vendors()) == {"embedded-cpu.icd": str(library)}


@pytest.mark.parametrize("content", ["", "\n", ".", "/", "/" + "a" * 300])
def test_a_folder_is_no_library(prefix: Path, content: str) -> None:
    """Leaves out a runtime whose file names nothing or a folder."""
    library = embed(prefix, "cpu")
    embed(prefix, "odd", content=content)
    assert listed(ensure_vendors()) == {"embedded-cpu.icd": str(library)}


def test_nothing_embedded_changes_nothing(prefix: Path, tmp_path: Path) -> None:
    """Leaves the loader alone where no runtime is embedded."""
    (tmp_path / "system" / "pocl.icd").write_text("libpocl.so.2\n")
    assert prefix.is_dir()
    assert ensure_vendors() is None
    assert VENDORS_VARIABLE not in runtimes.os.environ
    assert not (tmp_path / "cache").exists()


def test_the_callers_choice_stands(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the loader alone where the caller has chosen runtimes."""
    embed(prefix, "cpu")
    monkeypatch.setenv(VENDORS_VARIABLE, "/chosen/by/hand")
    assert ensure_vendors() is None
    assert runtimes.os.environ[VENDORS_VARIABLE] == "/chosen/by/hand"


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
    """Takes a temporary folder where the cache cannot be written."""
    embed(prefix, "cpu")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = ensure_vendors()
    assert "embedded-cpu.icd" in listed(folder)
    assert runtimes.os.environ[VENDORS_VARIABLE] == str(folder)


def test_nowhere_to_write_changes_nothing(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaves the loader alone where not even a temporary folder can be made."""
    embed(prefix, "cpu")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(runtimes.tempfile, "tempdir", str(tmp_path / "file"))
    assert ensure_vendors() is None
    assert VENDORS_VARIABLE not in runtimes.os.environ
