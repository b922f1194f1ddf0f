"""Queues on every OpenCL device of this machine, for tests that bring objects of their own."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import kernelcast

_CALIBRATIONS = Path(__file__).parents[2] / "benchmarks" / "results" / "calibration"
_NO_DEVICE = "no device"
_CONTEXTS: list[cl.Context] = []
"""Some runtimes let a context go although queues of it are in use."""


@cache
def list_devices() -> dict[str, cl.Device]:
    """List the devices of all platforms, by the platform's first word."""
    devices = [
        (platform.name.split()[0], device)
        for platform in cl.get_platforms()
        for device in platform.get_devices()
    ]
    names = [name for name, _ in devices]
    return {
        name if names.count(name) == 1 else f"{name}{place}": device
        for place, (name, device) in enumerate(devices)
    }


def parametrize_queues(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `queue` once per device; ask no driver if it will not run."""
    if "queue" not in metafunc.fixturenames:
        return
    will_run = metafunc.config.option.markexpr != "not device"
    names = (list(list_devices()) or [_NO_DEVICE]) if will_run else ["any device"]
    metafunc.parametrize("queue", names, indirect=True, scope="module")


def make_queue(name: str) -> cl.CommandQueue:
    """Make a queue that times, in a context of its own."""
    if name == _NO_DEVICE:
        pytest.fail("there is no OpenCL device; install one, see docs/how-to/install.md")
    context = cl.Context([list_devices()[name]])
    _CONTEXTS.append(context)
    return cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)


def put(queue: cl.CommandQueue, content: np.ndarray) -> cl.Buffer:
    """Make a buffer that holds an array."""
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(queue.context, flags, hostbuf=content)


def read(queue: cl.CommandQueue, buffer: cl.Buffer, like: np.ndarray) -> np.ndarray:
    """Read a buffer as an array like another one."""
    content = np.empty_like(like)
    cl.enqueue_copy(queue, content, buffer)
    return content


def make_launch(
    program: cl.Program,
    name: str,
    global_size: Sequence[int],
    local_size: Sequence[int] | None,
    args: Sequence[Any],
    queue: cl.CommandQueue,
    **more: Any,  # noqa: ANN401 - of `kernelcast.Launch`
) -> kernelcast.Launch:
    """Make a launch of a program's kernel."""
    kernel = cl.Kernel(program, name)
    return kernelcast.Launch(kernel, global_size, local_size, args, queue=queue, **more)


def write_calibration(data: Path, device_id: str, *, transfer_s: float | None = None) -> None:
    """Put a calibration into a data folder, where `transfer_s` is what moving any buffer takes."""
    runtime = device_id.partition("-")[0]
    (path, *_) = [*sorted(_CALIBRATIONS.glob(f"{runtime}-*.yaml")), *_CALIBRATIONS.glob("*.yaml")]
    text = re.sub(r"^id: .*$", f"id: {device_id}", path.read_text(encoding="utf-8"), flags=re.M)
    if transfer_s is not None:
        pattern = r"^( *transfer_(?:to|from)_device_s): .*$"
        text = re.sub(pattern, rf"\1: {transfer_s}", text, flags=re.M)
        text = re.sub(r"^( *transfer_\w+_bytes_per_s): .*$", r"\1: 1.0e+12", text, flags=re.M)
    folder = data / "machines"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{device_id}.yaml").write_text(text, encoding="utf-8")
