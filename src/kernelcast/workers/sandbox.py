"""A child process that sees only what a kernel's run needs, by bubblewrap.

Namespaces of its own for mounts, processes, IPC and network; of the file system nothing but the
system's libraries, Python, this package, the device files, and what the caller adds, all to read
only; folders of its own for temporary files and the runtimes' caches; no environment variable that
could hold a secret; without root's rights where we have them.
"""

import os
import shutil
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kernelcast.workers.protocol import Reporter

PROGRAM = "bwrap"
_PACKAGE = Path(__file__).resolve().parent.parent
_SYSTEM = (
    "/usr", "/opt/intel", "/opt/rocm", "/etc/OpenCL", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/nvidia", "/sys",
)  # fmt: skip
_OWN = "/tmp"
_NOBODY = 65534  # user and group, as Linux has them
# Of runtimes, compilers and libraries that choose or tune devices; nothing that names a place of
# the user's, and no secret.
_KEPT = frozenset({
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "NUMEXPR_MAX_THREADS", "KERNELCAST_CLANG",
})  # fmt: skip
_KEPT_BEGINNINGS = (
    "LC_", "OCL_", "OPENCL_", "POCL_", "RUSTICL_", "LP_", "GALLIUM_", "MESA_", "LIBGL_", "CL_",
    "OMP_", "KMP_", "TBB_", "NUMBA_", "MKL_", "OPENBLAS_", "CUDA_", "NVIDIA_", "HSA_", "HIP_",
    "ROCR_", "GPU_", "AMD_", "IGC_", "NEO_", "ZE_", "SYCL_",
)  # fmt: skip
# Inside, every runtime keeps what it compiles to itself: no stranger finds what another left.
_PLACES = {
    "HOME": _OWN,
    "TMPDIR": _OWN,
    "XDG_CACHE_HOME": f"{_OWN}/cache",
    "XDG_DATA_HOME": f"{_OWN}/data",
    "POCL_CACHE_DIR": f"{_OWN}/cache/pocl",
    "MESA_SHADER_CACHE_DIR": f"{_OWN}/cache/mesa",
    "PYTHONDONTWRITEBYTECODE": "1",
}
# Changing the user before Python starts anew leaves a process that may read its own /proc.
_DROP = (
    "import os, sys; user, group, *groups = map(int, sys.argv[1].split(',')); "
    "os.setgroups(groups); os.setgid(group); os.setuid(user); os.execv(sys.argv[2], sys.argv[2:])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a confined process may see beside what any needs."""

    readable: tuple[tuple[Path, str], ...] = ()
    """Files and folders, and where they lie inside."""
    hidden: tuple[Path, ...] = ()
    """Files and folders that must not be seen even where they lie in a folder that is, such as a
    database in Python's."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables inside."""


def confine(
    command: Sequence[str], environment: Mapping[str, str], confinement: Confinement
) -> tuple[list[str], dict[str, str]]:
    """Make the command line that runs a command of this Python confined, and its environment."""
    prefixes = map(Path, (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    python = [one for one in (*dict.fromkeys(prefixes), _PACKAGE) if one != Path("/")]
    seen = [one for one in (*_list_system(environment), *python) if one.exists()]
    options = ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-net",
               "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]  # fmt: skip
    options += ["--perms", "1777", "--tmpfs", _OWN, "--chdir", _OWN]
    # Make /bin, /lib and the like what they are outside: links into /usr, or folders.
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    options += _bind((one, str(one)) for one in seen)
    options += ["--proc", "/proc", "--dev", "/dev"]
    for device in _list_devices():
        options += ["--dev-bind-try", str(device), str(device)]
    # Cover what would be seen although it must not.
    resolved = [one.resolve() for one in seen]
    for path in (one.resolve() for one in confinement.hidden):
        if any(path.is_relative_to(folder) for folder in resolved):
            if path.is_dir():
                options += ["--tmpfs", str(path)]
            elif path.exists():
                options += ["--ro-bind", "/dev/null", str(path)]
    options += _bind(confinement.readable)
    started = [*command]
    if os.geteuid() == 0:
        options += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        # Choose a user who owns nothing, nobody, with groups that may use the devices.
        nodes = [node for device in _list_devices() for node in ([*device.glob("*")] or [device])]
        groups = {node.stat().st_gid for node in nodes} - {0}
        started = [
            sys.executable, "-I", "-S", "-c", _DROP,
            ",".join(map(str, (_NOBODY, _NOBODY, *sorted(groups)))), *command,
        ]  # fmt: skip
    else:
        options += ["--unshare-user"]
    # What devices need to know of an environment; secrets and the user's places go.
    inside = {
        name: value
        for name, value in environment.items()
        if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
    inside |= {**_PLACES, **confinement.environment, "PYTHONPATH": str(_PACKAGE.parent)}
    return [shutil.which(PROGRAM) or PROGRAM, *options, "--", *started], inside


def _bind(places: Iterable[tuple[Path, str]]) -> Iterator[str]:
    """Show files and folders; bubblewrap would make the folders above them for root alone."""
    made: set[Path] = {Path("/"), Path(_OWN)}
    bound: list[Path] = []
    for outside, place in places:
        inside = Path(place)
        if inside == outside and any(inside.is_relative_to(one) for one in bound):
            inside = outside.resolve()  # of a link in a folder that is seen, which leads there
        for folder in reversed(inside.parents):
            if folder not in made and not any(folder.is_relative_to(one) for one in bound):
                made.add(folder)
                yield from ("--perms", "0755", "--dir", str(folder))
        bound.append(inside)
        yield from ("--ro-bind-try", str(outside), str(inside))


def _list_system(environment: Mapping[str, str]) -> Iterator[Path]:
    """List the system's libraries and those that the OpenCL loader is told of."""
    yield from map(Path, _SYSTEM)
    folders = [Path("/etc/OpenCL/vendors")]
    chosen = environment.get("OCL_ICD_VENDORS")
    if chosen:
        folders.append(Path(chosen))
        yield Path(chosen)
    for folder in folders:
        for one in sorted(folder.glob("*.icd")) if folder.is_dir() else [folder]:
            with suppress(OSError, UnicodeDecodeError):
                library = Path(one.read_text(encoding="utf-8").strip())
                if library.is_absolute() and library.parent != Path("/"):
                    yield library.parent
    compiler = shutil.which(environment.get("KERNELCAST_CLANG", ""))
    if compiler:  # with the libraries beside it, as bin/clang has them in lib
        yield from (Path(compiler).parent, Path(compiler).parent.parent / "lib")
    for name in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if Path(name).is_absolute():
            yield Path(name)


def _list_devices() -> list[Path]:
    patterns = ("dri", "kfd", "dxg", "nvidia*", "accel*")
    return [device for one in patterns for device in sorted(Path("/dev").glob(one))]


_SECRETS = ("/etc/shadow", "/etc/passwd", "/root", "/home", "/var", "/run")


def list_view(places: tuple[str, ...] | None, _: Reporter) -> tuple[str, ...]:
    """List what can be seen: of places those that can be opened, other processes, a network."""
    found = [place for place in (_SECRETS if places is None else places) if _can_read(Path(place))]
    others = [one for one in os.listdir("/proc") if one.isdigit() and int(one) != os.getpid()]  # noqa: PTH208 - names
    if os.getppid() != 1 or len(others) > 1:
        found.append("other processes")
    if any(name != "lo" for _, name in socket.if_nameindex()):
        found.append("the network")
    if os.geteuid() == 0:
        found.append("root's rights")
    return tuple(found)


def _can_read(path: Path) -> bool:
    """Tell whether anything is to be had from a file or folder."""
    try:
        if path.is_dir():
            return any(_can_read(one) for one in path.iterdir() if not one.is_dir())
        return bool(path.open("rb").read(1))
    except OSError:
        return False
