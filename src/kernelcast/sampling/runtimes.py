"""Finds OpenCL runtimes, and keeps their threads and caches where they do no harm.

Wheels such as ``intel-opencl-rt`` bring a complete CPU device, but the ``.icd`` file they install
names a path that does not exist. A folder of ours holds corrected copies and links to the
system's files; the loader reads it through ``OCL_ICD_VENDORS``, which must be set before
pyopencl is imported for the first time.
"""

import atexit
import contextlib
import hashlib
import logging
import os
import shutil
import stat
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from kernelcast.records.private_files import (
    make_private_folder,
    user_cache_folder,
    written_whole,
)

_log = logging.getLogger(__name__)

_FOLDERS: Final = {
    "POCL_CACHE_DIR": "pocl",
    "MESA_SHADER_CACHE_DIR": "mesa",
    "NUMBA_CACHE_DIR": "numba",
    "MPLCONFIGDIR": "matplotlib",
}
_OFF: Final = {"PYOPENCL_NO_CACHE": "1"}
# A disk that is full takes an empty file, and often a small one.
_TRIAL_BYTES: Final = 2**16


def ensure_caches() -> Path | None:
    """Point caches at a temporary folder if the user's folder cannot be written.

    Must be called before pyopencl is imported. What the caller has chosen is left alone, and
    child processes find what their parent has chosen. The folder goes when the process ends.

    Returns
    -------
    Path or None
        The temporary folder, where one was needed.
    """
    if all(name in os.environ for name in (*_FOLDERS, *_OFF)):
        return None
    failure = _try_writing(user_cache_folder())
    if failure is None:
        return None
    _log.warning("caches are not kept, so later runs build kernels anew: %s", failure)
    for name, value in _OFF.items():
        os.environ.setdefault(name, value)
    try:
        temporary = Path(tempfile.mkdtemp(prefix="kernelcast-caches-"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    for name, folder in _FOLDERS.items():
        (temporary / folder).mkdir()
        os.environ.setdefault(name, str(temporary / folder))
    return temporary


def _try_writing(folder: Path | None) -> str | None:
    """Say why files cannot be kept in a folder; None where they can."""
    if folder is None:
        return "there is no home folder"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix="kernelcast-") as trial:
            trial.write(bytes(_TRIAL_BYTES))
            trial.flush()
    except OSError as error:
        return f"{folder}: {error.strerror or error}"
    return None


VENDORS_VARIABLE = "OCL_ICD_VENDORS"
SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
DRIVER_FOLDERS = (
    "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib",
)  # fmt: skip
"""Where containers find NVIDIA's driver, often without the .icd file that names its OpenCL."""
_NVIDIA: Final = "libnvidia-opencl.so.1"
_READABLE_FOLDER = 0o755
_READABLE_FILE = 0o644


def ensure_vendors() -> Path | None:
    """Point the OpenCL loader at the embedded and the system's runtimes.

    Does nothing where the caller has chosen runtimes through ``OCL_ICD_VENDORS``, or where there is
    none but the system's (the loader's own default is then right). Where the cache cannot
    be written, the folder is a temporary one, which goes when the process ends.

    Returns
    -------
    Path or None
        The folder in use, if it is ours.
    """
    folder = _vendors_folder()
    chosen = os.environ.get(VENDORS_VARIABLE)
    if chosen is not None and Path(chosen) != folder:
        return None
    files = _embedded_files() | _driver_files()
    if not files:
        return None
    files |= {
        f"system-{path.name}": f"{named}\n"
        for path in sorted(SYSTEM_VENDORS.glob("*.icd"))
        if (named := _read_icd(path))
    }
    used = _write_somewhere(folder, files)
    if used is not None:
        os.environ[VENDORS_VARIABLE] = str(used)
    return used


def list_runtime_files() -> list[Path]:
    """List the files that decide which runtimes the loader finds: whatever changes is another.

    Libraries that an .icd file names by name alone are found through the system's cache of them,
    which is written anew where one is installed.
    """
    chosen = os.environ.get(VENDORS_VARIABLE)
    folders = [_own_vendors(), Path(chosen) if chosen else SYSTEM_VENDORS]
    icds = [path for folder in folders for path in (folder, *sorted(folder.glob("*.icd")))]
    libraries = [Path(named) for path in icds if (named := _read_icd(path))]
    embedded = [Path(named.strip()) for named in _embedded_files().values()]
    cuda = Path(sysconfig.get_path("platlib")) / "cuda" / "bindings"
    return [*icds, *libraries, *embedded, cuda, Path("/etc/ld.so.cache")]


def pin_threads() -> None:
    """Ask runtimes that offer it to keep each of their threads on a core of its own.

    Where threads of a CPU device sleep between launches, Linux may wake two of them on one core
    and needs some 10 ms to notice: on PoCL, samples of 2 ms then took exactly twice their time.
    A whole run hardly differs. Works before the runtime is loaded, that is, in a process of our
    own; a choice of the caller's is left alone.
    """
    os.environ.setdefault("POCL_AFFINITY", "1")


def _vendors_folder() -> Path | None:
    """One folder per environment, so that two virtual environments do not disturb each other.

    None where the user has no home, as some containers' users.
    """
    cache = user_cache_folder()
    if cache is None:
        return None
    prefix = hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]
    return cache / "kernelcast" / f"opencl-vendors-{prefix}"


def _own_vendors() -> Path:
    """Give the folder that wheels install into."""
    return Path(sys.prefix) / "etc" / "OpenCL" / "vendors"


def _embedded_files() -> dict[str, str]:
    """Give file name and corrected content of each .icd file installed by a wheel."""
    files = {}
    library_folders = [Path(sys.prefix) / "lib", Path(sys.prefix) / "Library" / "bin"]
    for icd in sorted(_own_vendors().glob("*.icd")):
        named = Path(_read_icd(icd))
        candidates = [named, *(folder / named.name for folder in library_folders)]
        found = next((path for path in candidates if path.is_absolute() and _is_file(path)), None)
        if found is not None:
            files[f"embedded-{icd.name}"] = f"{found}\n"
    return files


def _driver_files() -> dict[str, str]:
    """Give an .icd file for the OpenCL of NVIDIA's driver, where the system has none."""
    if any(Path(_read_icd(path)).name == _NVIDIA for path in SYSTEM_VENDORS.glob("*.icd")):
        return {}
    folders = [*DRIVER_FOLDERS, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    paths = (Path(folder) / _NVIDIA for folder in folders if folder)
    return next(({"driver-nvidia.icd": f"{path}\n"} for path in paths if _is_file(path)), {})


def _read_icd(path: Path) -> str:
    """Give the library that an .icd file names; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip() if path.is_file() else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # for instance a name longer than the file system takes
        return False


def _write_somewhere(folder: Path | None, files: dict[str, str]) -> Path | None:
    """Write the folder, or a temporary one in its place; None where neither can be written."""
    if folder is not None:
        with contextlib.suppress(OSError):
            _write_folder(folder, files)
            return folder
    try:
        # Of a name that nobody can guess: the loader runs whatever a foreign folder names.
        temporary = Path(tempfile.mkdtemp(prefix="kernelcast-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        _write_folder(temporary, files)
    except OSError:
        return None
    return temporary


def _write_folder(folder: Path, files: dict[str, str]) -> None:
    make_private_folder(folder)
    _let_all_read(folder, _READABLE_FOLDER)
    for stale in folder.glob("*.icd"):
        if stale.name not in files:
            stale.unlink(missing_ok=True)
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            # Another process may be reading the folder: a file appears whole or not at all.
            with written_whole(path) as partial:
                partial.write_text(content, encoding="utf-8")
        _let_all_read(path, _READABLE_FILE)


def _let_all_read(path: Path, mode: int) -> None:
    """Open a file or folder to confined processes of root's service, which are another user's.

    The names of libraries are no secret.
    """
    if stat.S_IMODE(path.stat().st_mode) & mode != mode:  # a right one may lie on a read-only disk
        path.chmod(mode)
