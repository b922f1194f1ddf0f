"""What a device cannot take is known before its compiler is asked; the rest is ranked."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.launches.machines import read_machine
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.records.arguments import LocalArgument
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import DeviceLimitError, InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.tuning import ranking
from kernelcast.tuning.ranking import (
    Axis,
    Walk,
    cost_launch,
    count_moved,
    rank,
    refuse_misfit,
    several_processes,
)
from kernelcast.tuning.space import read_space
from support.builders import make_description
from support.problems import buffer_of, write_problem

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks/results"
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
    with pytest.raises(DeviceLimitError, match=words):
        refuse_misfit(FITS, device, local_bytes=2**14)
    refuse_misfit(FITS, DEVICE, local_bytes=2**14)


def test_a_remainder_needs_device_and_language() -> None:
    """Smaller last work-groups are OpenCL C 2.0's, and not every device has them."""
    uneven = replace(FITS, ndrange=NDRange(global_size=(1000,), local_size=(64,)))
    kernel = replace(FITS.kernel, build_options=("-cl-std=CL2.0",))
    modern = replace(uneven, kernel=kernel)
    refuse_misfit(modern, DEVICE)
    for problem, device in (
        (uneven, DEVICE), (modern, replace(DEVICE, has_non_uniform_work_groups=False))
    ):  # fmt: skip
        with pytest.raises(DeviceLimitError, match="does not divide"):
            refuse_misfit(problem, device)


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


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_chosen_configurations_are_fast_where_they_were_measured(name: str) -> None:
    """On two runtimes, one of which leaves vectors to compilers: the best of five is nearly the
    best of all, and the first far better than a random one."""
    space = read_space(ROOT / f"examples/tuning/{name}/{name}.yaml").configurations
    problems = [one.problem for one in space if one.problem]
    kernels = [model_kernel(one) for one in problems]
    for device_id in ("intel-intel-xeon-processor-9121", "pocl-skylake-avx512-intel-366a"):
        device = read_device(read_machine(RESULTS / f"calibration/{device_id}.yaml"))
        costs = [
            cost_launch(kernel, problem.ndrange, device)
            for kernel, problem in zip(kernels, problems, strict=True)
        ]
        stored = json.loads((RESULTS / f"tuning/{device_id}.json").read_text(encoding="utf-8"))
        measured = stored["examples"][name]["configurations"]
        assert [one["parameters"] for one in measured] == [dict(one.parameters) for one in space]
        times_s = [median(one["cpu_s"]) for one in measured]
        order = sorted(range(len(costs)), key=lambda place: costs[place].seconds)
        assert min(times_s[place] for place in order[:5]) < 1.1 * min(times_s)
        assert times_s[order[0]] < 0.6 * median(times_s)
        widths = {one.quantities["vector_work_items_count"] for one in costs}
        assert widths == ({1, device.width} if device.width > 1 else {1})


def test_lines_that_a_cache_loads() -> None:
    """A column read row by row is reused where its rows fall into different sets only; what stands
    behind a loop is not executed by its iterations."""
    both, column = (True, True), (64, 16)  # 64 rows, then the next of 16 floats in each
    for walks, extents, lines in (
        ([Walk("", 4, (4096 + 64, 4), both)], column, 64),
        ([Walk("", 4, (4096, 4), both)], column, 64 * 16),
        ([Walk("", 4, (256, 256), both)], (16, 16), 31),  # iterations that meet the same lines
        ([Walk("", 4, (0, 64), (False, True)), Walk("", 4, (64, 640_000), both)],
         (10_000, 10_000), 1e8),
    ):  # fmt: skip
        loaded, *_ = count_moved(dict.fromkeys(walks, False), [*map(Axis, extents)], 64, 32768, 8)
        assert loaded == pytest.approx(lines, rel=0.02)
