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

from kernelcast.records.private_files import make_private_folder, user_cache_folder, written_whole

_log = logging.getLogger(__name__)
_is_file = os.path.isfile  # pathlib raises of names longer than the file system takes

_FOLDERS = {
    "POCL_CACHE_DIR": "pocl",
    "MESA_SHADER_CACHE_DIR": "mesa",
    "NUMBA_CACHE_DIR": "numba",
    "MPLCONFIGDIR": "matplotlib",
}
_NO_CACHE = "PYOPENCL_NO_CACHE"


def ensure_caches() -> Path | None:
    """Point caches at a temporary folder, which goes with the process, if the user's cannot be
    written; before pyopencl is imported."""
    if all(name in os.environ for name in (*_FOLDERS, _NO_CACHE)):
        return None
    folder = user_cache_folder()
    if folder is None:
        failure = "there is no home folder"
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder, prefix="kernelcast-") as trial:
                trial.write(bytes(2**16))  # a full disk takes an empty file, often a small one
                trial.flush()
        except OSError as error:
            failure = f"{folder}: {error.strerror or error}"
        else:
            return None
    _log.warning("caches are not kept, so later runs build kernels anew: %s", failure)
    os.environ.setdefault(_NO_CACHE, "1")
    try:
        temporary = _make_temporary_folder("kernelcast-caches-")
    except OSError:
        return None
    for name, below in _FOLDERS.items():
        (temporary / below).mkdir()
        os.environ.setdefault(name, str(temporary / below))
    return temporary


def _make_temporary_folder(prefix: str) -> Path:
    temporary = Path(tempfile.mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


VENDORS_VARIABLE = "OCL_ICD_VENDORS"
SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
DRIVER_FOLDERS = (
    "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib",
)  # fmt: skip
"""Where containers find NVIDIA's driver, often without the .icd file that names its OpenCL."""
_NVIDIA = "libnvidia-opencl.so.1"


def ensure_vendors() -> Path | None:
    """Point the OpenCL loader at the embedded and the system's runtimes, unless ``OCL_ICD_VENDORS``
    is chosen or there are none but the system's; return the folder if it is ours."""
    folder, cache = None, user_cache_folder()  # none where the user has no home
    if cache is not None:
        # One per environment, so that two virtual environments do not disturb each other.
        prefix = hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]
        folder = cache / "kernelcast" / f"opencl-vendors-{prefix}"
    chosen = os.environ.get(VENDORS_VARIABLE)
    if chosen is not None and Path(chosen) != folder:
        return None
    files = _list_embedded()
    if not any(Path(_read_icd(path)).name == _NVIDIA for path in SYSTEM_VENDORS.glob("*.icd")):
        folders = [*DRIVER_FOLDERS, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
        libraries = (Path(one) / _NVIDIA for one in folders if one)
        library = next(filter(_is_file, libraries), None)
        if library is not None:
            files["driver-nvidia.icd"] = f"{library}\n"
    if not files:
        return None
    files |= {
        f"system-{path.name}": f"{named}\n"
        for path in sorted(SYSTEM_VENDORS.glob("*.icd"))
        if (named := _read_icd(path))
    }
    with contextlib.suppress(OSError):
        if folder is not None:
            return _use_folder(folder, files)
    with contextlib.suppress(OSError):
        # Of a name that cannot be guessed: the loader runs whatever a foreign folder names.
        return _use_folder(_make_temporary_folder("kernelcast-"), files)
    return None


def list_runtime_files() -> list[Path]:
    """List the files that decide which runtimes the loader finds; the system's cache of libraries
    is one, for those that an .icd file names by name alone."""
    chosen = os.environ.get(VENDORS_VARIABLE)
    folders = [_own_vendors(), Path(chosen) if chosen else SYSTEM_VENDORS]
    icds = [path for folder in folders for path in (folder, *sorted(folder.glob("*.icd")))]
    libraries = [Path(named) for path in icds if (named := _read_icd(path))]
    embedded = [Path(named.strip()) for named in _list_embedded().values()]
    cuda = Path(sysconfig.get_path("platlib")) / "cuda" / "bindings"
    return [*icds, *libraries, *embedded, cuda, Path("/etc/ld.so.cache")]


def _own_vendors() -> Path:
    return Path(sys.prefix) / "etc" / "OpenCL" / "vendors"


def _list_embedded() -> dict[str, str]:
    """List file name and corrected content of each .icd file installed by a wheel."""
    files = {}
    library_folders = [Path(sys.prefix) / "lib", Path(sys.prefix) / "Library" / "bin"]
    for icd in sorted(_own_vendors().glob("*.icd")):
        named = Path(_read_icd(icd))
        for path in (named, *(folder / named.name for folder in library_folders)):
            if path.is_absolute() and _is_file(path):
                files[f"embedded-{icd.name}"] = f"{path}\n"
                break
    return files


def _read_icd(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() if path.is_file() else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _use_folder(folder: Path, files: dict[str, str]) -> Path:
    """Have the loader read a folder of .icd files, open to confined processes of root's service
    too."""
    make_private_folder(folder)
    for stale in folder.glob("*.icd"):
        if stale.name not in files:
            stale.unlink(missing_ok=True)
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            # Another process may be reading the folder: a file appears whole or not at all.
            with written_whole(path) as partial:
                partial.write_text(content, encoding="utf-8")
    for path, mode in ((folder, 0o755), *((folder / name, 0o644) for name in files)):
        if stat.S_IMODE(path.stat().st_mode) & mode != mode:  # it may lie on a read-only disk
            path.chmod(mode)
    os.environ[VENDORS_VARIABLE] = str(folder)
    return folder
