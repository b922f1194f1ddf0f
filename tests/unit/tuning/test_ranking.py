"""What a device cannot take is known before its compiler is asked; the rest is ranked."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.records.arguments import LocalArgument
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.tuning import ranking
from kernelcast.tuning.ranking import find_obstacle, rank, several_processes
from kernelcast.tuning.space import read_space
from support.builders import make_description
from support.problems import buffer_of, write_problem

DEVICE = make_description()
FITS = write_problem(
    "kernel void k() {}", buffer_of("float32", 2**20), LocalArgument(bytes=2**14),
    items=(1024, 1024), local=(32, 32),
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_work_group_size": 1023}, "work-items; the device allows at most 1023"),
        ({"max_work_item_sizes": (1024, 16, 16)}, "axis 1: local size 32 exceeds the device's 16"),
        ({"local_memory_bytes": 2**15 - 1}, "local memory would take 32,768 bytes"),
        ({"max_allocation_bytes": 2**22 - 1}, "a buffer of 4,194,304 bytes"),
        ({"global_memory_bytes": 2**22 - 1}, "the buffers take 4,194,304 bytes"),
    ],
)
def test_each_limit_is_told(change: dict[str, object], words: str) -> None:
    """Says what is asked for, by kernel and arguments together, and what the device allows."""
    device: DeviceDescription = replace(DEVICE, **change)  # type: ignore[arg-type]  # one field each
    assert words in find_obstacle(FITS, device, local_bytes=2**14)
    assert find_obstacle(FITS, DEVICE, local_bytes=2**14) == ""


def test_a_remainder_needs_device_and_language() -> None:
    """Smaller last work-groups are OpenCL C 2.0's, and not every device has them."""
    uneven = replace(FITS, ndrange=NDRange(global_size=(1000,), local_size=(64,)))
    kernel = replace(FITS.kernel, build_options=("-cl-std=CL2.0",))
    modern = replace(uneven, kernel=kernel)
    assert "does not divide" in find_obstacle(uneven, DEVICE)
    assert find_obstacle(modern, DEVICE) == ""
    assert find_obstacle(modern, replace(DEVICE, has_non_uniform_work_groups=False)) != ""


def test_processes_find_what_one_finds(
    problem_file: Path, machine: MachineDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same predictions, in whatever process."""
    monkeypatch.setattr(ranking, "_WORTH_PROCESSES", 1)
    space = read_space(problem_file)
    alone = rank(space, make_description(), machine)
    with several_processes(space) as executor:
        assert rank(space, make_description(), machine, executor=executor) == alone
    assert all(one.predicted_s for one in alone.values())


def test_what_cannot_be_modelled_is_no_obstacle(
    problem_file: Path, machine: MachineDescription
) -> None:
    """A kernel that the analysis does not find has no prediction, and the device may know it."""
    problem_file.write_text(problem_file.read_text().replace("kernel: scale", "kernel: other"))
    for one in rank(read_space(problem_file), make_description(), machine).values():
        assert one.predicted_s is None
        assert not one.obstacle
        assert one.limiter.startswith("not modelled: kernel 'other' is not in")


def test_a_machine_that_says_too_little_is_an_error(
    problem_file: Path, machine: MachineDescription
) -> None:
    """Once, and not for each configuration."""
    bare = replace(machine, instructions=())
    with pytest.raises(InputError, match="kernelcast calibrate"):
        rank(read_space(problem_file), make_description(), bare)
    strange = replace(machine, kind=DeviceKind.ACCELERATOR)
    found = rank(read_space(problem_file), make_description(), strange)
    assert all("there are models of CPUs and of GPUs" in one.limiter for one in found.values())
