"""What a launch is remembered under."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from kernelcast.records.arguments import BufferArgument
from kernelcast.records.device import DeviceDescription
from kernelcast.records.launch_identity import (
    DeviceIdentity,
    KernelIdentity,
    LaunchIdentity,
    digest_arguments,
)
from kernelcast.records.problem import Problem

INSTRUCTIONS = "instructions"
"""Parameter of an identity: how many a launch executes by its source, see `count_work`."""
FileStamps = tuple[tuple[str, int, int], ...]
"""Path, time of the last change in nanoseconds, and size of each file of a buffer's content."""


def identify_launch(
    problem: Problem,
    device: DeviceDescription,
    *,
    seed: int,
    parameters: Mapping[str, int | float | str] | None = None,
) -> LaunchIdentity:
    """Say what a launch is: source, options, index space, arguments, device and driver."""
    return LaunchIdentity(
        kernel=_name_kernel(problem.kernel.name, problem.kernel.digest),
        device=_name_device(device.id, device.name, device.platform, device.driver),
        ndrange=problem.ndrange,
        arguments_digest=digest_arguments(problem.arguments, seed=seed),
        parameters=dict(parameters or {}),
    )


@lru_cache(maxsize=256)
def _name_kernel(name: str, digest: str) -> KernelIdentity:
    return KernelIdentity(name=name, digest=digest)


@lru_cache(maxsize=64)
def _name_device(device_id: str, name: str, platform: str, driver: str) -> DeviceIdentity:
    return DeviceIdentity(id=device_id, name=name, platform=platform, driver=driver)


def stamp_files(problem: Problem) -> FileStamps:
    """Give what tells that a file of a buffer's content has changed; empty for most problems."""
    found = []
    for argument in problem.arguments:
        if isinstance(argument, BufferArgument) and argument.path is not None:
            try:
                status = argument.path.stat()
            except OSError:
                found.append((str(argument.path), 0, 0))
            else:
                found.append((str(argument.path), status.st_mtime_ns, status.st_size))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class AskedName:
    """What a problem is found under by the very object that a caller gives."""

    key: Hashable
    problem: Problem
    """It is held, so that its place in memory names nothing else."""
    files: FileStamps


def name_asked(problem: Problem, device: object) -> AskedName:
    device_id = device if isinstance(device, str) else getattr(device, "id", None)
    return AskedName((id(problem), device_id), problem, stamp_files(problem))
