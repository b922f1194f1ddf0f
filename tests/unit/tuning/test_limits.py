"""What a device cannot take is known before its compiler is asked."""

from dataclasses import replace

import pytest

from kernelcast.records.arguments import BufferArgument, ElementType, LocalArgument
from kernelcast.records.device import DeviceDescription
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.tuning.ranking import find_obstacle
from support.builders import make_description

DEVICE = make_description()
FITS = Problem(
    name="p",
    kernel=Kernel(name="k", source="kernel void k() {}"),
    ndrange=NDRange(global_size=(1024, 1024), local_size=(32, 32)),
    arguments=(
        BufferArgument(element=ElementType("float32"), count=2**20),
        LocalArgument(bytes=2**14),
    ),
)


def test_nothing_speaks_against_what_fits() -> None:
    """A launch at the very limits is taken."""
    assert find_obstacle(FITS, DEVICE, local_bytes=2**14) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_work_group_size": 1023}, "work-items; the device allows at most 1023"),
        ({"max_work_item_sizes": (1024, 16, 16)}, "axis 1: local size 32 exceeds the device's 16"),
        ({"local_memory_bytes": 2**14 - 1}, "local memory would take 16,384 bytes"),
        ({"max_allocation_bytes": 2**22 - 1}, "a buffer of 4,194,304 bytes"),
        ({"global_memory_bytes": 2**22 - 1}, "the buffers take 4,194,304 bytes"),
    ],
)
def test_each_limit_is_told(change: dict[str, object], words: str) -> None:
    """The obstacle says what is asked for and what the device allows."""
    device: DeviceDescription = replace(DEVICE, **change)  # type: ignore[arg-type]  # one field each
    found = find_obstacle(FITS, device)
    assert words in found


def test_local_memory_of_kernel_and_arguments_adds_up() -> None:
    """Each alone would fit."""
    found = find_obstacle(FITS, DEVICE, local_bytes=2**14 + 1)
    assert "32,769 bytes" in found


def test_a_remainder_needs_device_and_language() -> None:
    """Smaller last work-groups are OpenCL C 2.0's, and not every device has them."""
    uneven = replace(FITS, ndrange=NDRange(global_size=(1000,), local_size=(64,)))
    modern = replace(uneven, kernel=replace_options(FITS.kernel, "-cl-std=CL2.0"))
    assert "does not divide" in find_obstacle(uneven, DEVICE)
    assert find_obstacle(modern, DEVICE) == ""
    assert find_obstacle(modern, replace(DEVICE, has_non_uniform_work_groups=False)) != ""


def replace_options(kernel: Kernel, *options: str) -> Kernel:
    """Give a kernel with other build options."""
    return Kernel(name=kernel.name, source=kernel.source, build_options=options)
