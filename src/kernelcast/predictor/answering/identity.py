"""What a launch is remembered under."""

from collections.abc import Mapping
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
    """Say what a launch is: source, options, index space, arguments, device and driver.

    Parameters
    ----------
    problem : Problem
        Kernel, index space, arguments.
    device : DeviceDescription
        The device.
    seed : int
        Of random buffer contents.
    parameters : mapping, optional
        What describes the size; no part of the identity.

    Raises
    ------
    InputError
        If a buffer's file cannot be read.
    """
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
