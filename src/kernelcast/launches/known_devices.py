"""The devices of this machine as they were listed last, on disk: to ask drivers takes 0.3 s.

The list stands for an hour, and only while nothing has changed that devices come from: runtimes and
their libraries, what the environment tells them, processors, memory, and the files that drivers of
graphics cards make.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kernelcast.launches.data_folder import data_folder
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.private_files import write_private
from kernelcast.sampling.device_ids import match_device_id
from kernelcast.sampling.runtimes import list_runtime_files
from kernelcast.workers.decoding import NotDecodableError, decode
from kernelcast.workers.encoding import encode

_FORMAT: Final = "kernelcast device list 1"
_STANDS_S: Final = 3600.0
_VARIABLES: Final = (
    "OCL_", "OPENCL_", "CL_", "POCL_", "RUSTICL_", "MESA_", "GALLIUM_", "LP_", "LIBGL_", "LD_",
    "CUDA_", "NVIDIA_", "GPU_", "HIP_", "ROCR_", "HSA_", "AMD_", "ZE_", "NEO", "INTEL_", "OMP_",
    "TBB_", "SYCL_", "KERNELCAST_CUDA_",
)  # fmt: skip
"""Beginnings of the names of variables that runtimes read."""
_TOLD: Final = (
    "/proc/sys/kernel/random/boot_id", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max",
)  # fmt: skip
_DRIVER_FILES: Final = ("dri/*", "nvidia*", "kfd", "mali*")


def recall_devices() -> list[DeviceDescription] | None:
    """Give the devices as they were listed last; None where that may not hold any more."""
    held = _read_list()
    try:
        return None if held is None else [*decode(held[1], tuple[DeviceDescription, ...])]
    except NotDecodableError:
        return None


def refuse_unknown_ids(wanted: Sequence[str]) -> None:
    """Refuse ids that no device has, where the list tells that: before anything slow is done."""
    held = _read_list() if wanted else None
    if held is not None:
        for one in wanted:
            match_device_id(one, held[0])


def _read_list() -> tuple[list[str], bytes] | None:
    """Give the ids of the devices, and their descriptions as text; None where it is too old."""
    try:
        path = _locate()
        is_new = 0 <= time.time() - path.stat().st_mtime <= _STANDS_S
        head, _, text = path.read_bytes().partition(b"\n")
        stamp, ids = json.loads(head)
        return (list(map(str, ids)), text) if ids and is_new and stamp == _stamp() else None
    except (OSError, ValueError, TypeError, KernelcastError):
        return None


def remember_devices(found: Sequence[DeviceDescription]) -> None:
    """Keep a list; where that fails, drivers are asked again."""
    with suppress(OSError, KernelcastError):
        head = json.dumps([_stamp(), [one.id for one in found]])
        write_private(_locate(), head.encode() + b"\n" + encode(tuple(found)))


def forget_devices() -> None:
    with suppress(OSError, KernelcastError):
        _locate().unlink(missing_ok=True)


def _locate() -> Path:
    return data_folder() / "device_list.json"


def _stamp() -> str:
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    parts = [
        _FORMAT,
        sorted(variables.items()),
        os.cpu_count(),
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None,
        [_read(Path(one)) for one in _TOLD],
        sorted(str(one) for names in _DRIVER_FILES for one in Path("/dev").glob(names)),
        [*_stamp_files()],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _stamp_files() -> Iterator[tuple[str, int, int]]:
    for path in list_runtime_files():
        with suppress(OSError):
            status = path.stat()
            yield str(path), status.st_mtime_ns, status.st_size


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
