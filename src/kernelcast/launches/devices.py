"""Lists and tries the devices of this machine, from outside their drivers' reach.

They are kept on disk as they were listed last: to ask drivers takes 0.3 s. The list stands for an
hour, and only while nothing has changed that devices come from: runtimes and their libraries, what
the environment tells them, processors, memory, and the files that drivers of graphics cards make.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.settings import prefix
from kernelcast.records.device import DeviceDescription, DeviceReport, TimerCheck, match_device_id
from kernelcast.records.errors import KernelcastError
from kernelcast.records.private_files import write_private
from kernelcast.sampling.runtimes import list_runtime_files
from kernelcast.workers import (
    BESIDE,
    SPARE,
    Reporter,
    Task,
    WarmChildren,
    run_isolated,
)
from kernelcast.workers.wire import NotDecodableError, decode, encode

Answer = TypeVar("Answer")
_TIMEOUT_S = 60.0
_SUBJECT = "list of devices"
_LIST = Task(entry="kernelcast.launches.devices:ask_drivers", returns=tuple[DeviceDescription, ...])
_CHECK = Task(entry="kernelcast.launches.devices:check_device", returns=TimerCheck)
_FORMAT: Final = "kernelcast device list 2"
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


@cache
def share_children() -> WarmChildren:
    """Give the child processes that list devices and sample on them."""
    return WarmChildren()


def start_ahead(device_id: str | None) -> None:
    """Start the process that lists the devices, then samples on one; waits for nothing."""
    steps = ["kernelcast.launches.devices:look:"]
    if device_id is not None:
        sampling = "kernelcast.predictor.answering.measuring"
        steps.append(f"{BESIDE}{sampling}:make_ready:{device_id}")
    share_children().start_ahead(steps)


def list_descriptions(children: WarmChildren | None = None) -> list[DeviceDescription]:
    """Describe every device in the order of their ids, by a child process that may crash."""
    if children is None:
        found = run_isolated(_LIST, None, timeout_s=_TIMEOUT_S, subject=_SUBJECT)
    else:
        found = children.run(SPARE, _LIST, None, timeout_s=_TIMEOUT_S, subject=_SUBJECT)
    remember_devices(found)
    return list(found)


def choose_devices(
    device_ids: Sequence[str], children: WarmChildren | None = None
) -> list[DeviceDescription]:
    """Describe the devices of those ids or their beginnings, or all where none is named.

    Who has `children` asks a device next, which finds out whether it is still there: drivers are
    not asked where they have just told.
    """
    known = None if children is None else recall_devices()
    return pick_devices(device_ids, known or list_descriptions(children))


def pick_devices(
    device_ids: Sequence[str], known: Sequence[DeviceDescription]
) -> list[DeviceDescription]:
    """Pick the devices that have these ids, or beginnings of ids; all if none is named."""
    by_id = {one.id: one for one in known}
    chosen = dict.fromkeys(match_device_id(wanted, by_id) for wanted in device_ids)
    return [by_id[key] for key in (chosen or by_id)]


def examine_devices(*, report: Callable[[str], None] = lambda _: None) -> list[DeviceReport]:
    """Try every device, each in a child process of its own.

    Parameters
    ----------
    report : callable, optional
        Is told of each device and stage.

    Returns
    -------
    list of DeviceReport
        A device that fails, crashes or hangs says so in `broken_reason`; the others go on.

    Raises
    ------
    NoDeviceError
        If there is no device.
    """
    report("looking for devices")
    asked = ask_each(_CHECK, list_descriptions(), lambda device: device.id, report=report)
    return [
        DeviceReport(description=device, broken_reason=str(timer))
        if isinstance(timer, KernelcastError)
        else DeviceReport(description=device, timer=timer)
        for device, timer in asked
    ]


def ask_each(
    task: Task[Answer],
    devices: Iterable[DeviceDescription],
    ask: Callable[[DeviceDescription], object],
    *,
    timeout_s: float = _TIMEOUT_S,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[DeviceDescription, Answer | KernelcastError]]:
    """Have a child process for each device do a task; one that fails has its error for answer."""
    for device in devices:
        found: Answer | KernelcastError
        try:
            found = run_isolated(
                task, ask(device), timeout_s=timeout_s, subject=device.id,
                report=prefix(report, f"{device.id}: "),
            )  # fmt: skip
        except KernelcastError as error:
            found = error
        yield device, found


def look(_: str) -> None:
    """Find the devices before they are asked for, in a child process as the two below."""
    from kernelcast.sampling.discovery import find_devices_once  # loads drivers

    find_devices_once()


def ask_drivers(_: None, report: Reporter) -> tuple[DeviceDescription, ...]:
    """Describe every device that the drivers show."""
    from kernelcast.sampling.discovery import find_devices_once

    report("asking the drivers")
    return tuple(description for description, _ in find_devices_once())


def check_device(device_id: str, report: Reporter) -> TimerCheck:
    """Build and run a kernel on one device."""
    from kernelcast.sampling.session import open_device

    report("trial kernel")
    trial = open_device(device_id).trial
    return TimerCheck(event_s=trial.event_s, host_s=trial.host_s, agrees=trial.agrees)


def recall_devices() -> list[DeviceDescription] | None:
    """Give the devices as they were listed last; None where that may not hold any more."""
    try:
        path = _locate()
        is_new = 0 <= time.time() - path.stat().st_mtime <= 3600.0
        stamp, _, text = path.read_bytes().partition(b"\n")
        if is_new and stamp.decode() == _stamp():
            return [*decode(text, tuple[DeviceDescription, ...])] or None
    except (OSError, ValueError, KernelcastError, NotDecodableError):
        pass
    return None


def refuse_unknown_ids(wanted: Sequence[str]) -> None:
    """Refuse ids that no device has, where the list tells that: before anything slow is done."""
    if wanted and (held := recall_devices()) is not None:
        pick_devices(wanted, held)


def remember_devices(found: Sequence[DeviceDescription]) -> None:
    """Keep a list; where that fails, drivers are asked again."""
    with suppress(OSError, KernelcastError):
        write_private(_locate(), _stamp().encode() + b"\n" + encode(tuple(found)))


def forget_devices() -> None:
    """Have drivers asked again: a device was not there any more."""
    with suppress(OSError, KernelcastError):
        _locate().unlink(missing_ok=True)


def _locate() -> Path:
    return data_folder() / "device_list.json"


def _stamp() -> str:
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    told, files = [], []
    for path in map(Path, _TOLD):
        with suppress(OSError):
            told.append(path.read_text(encoding="utf-8"))
    for path in list_runtime_files():
        with suppress(OSError):
            status = path.stat()
            files.append((str(path), status.st_mtime_ns, status.st_size))
    parts = [
        _FORMAT,
        sorted(variables.items()),
        os.cpu_count(),
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None,
        told,
        sorted(str(one) for names in _DRIVER_FILES for one in Path("/dev").glob(names)),
        files,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
