"""What the steps of `first_gpu_hour.py` measure, each in its own process."""

import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from first_gpu_hour_samples import measure_sampling, measure_write_back

from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.calibration.calibration import (
    CalibrationSettings,
    Effort,
    calibrate_device,
    list_benchmarks,
)
from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.launches.machines import machine_path
from kernelcast.launches.modelling import model_launch
from kernelcast.launches.own_machine import find_own_machine
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.trace_task import TraceSettings, trace_in_session
from kernelcast.records.ndrange import NDRange
from kernelcast.records.plain import to_plain
from kernelcast.records.problem import Problem
from kernelcast.records.traits import Trait
from kernelcast.sampling.building import build_program, read_build_log
from kernelcast.sampling.compiler_facts import read_compiler_facts
from kernelcast.sampling.device_check import check_device
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.saturation import make_unique
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training_data.applications.loading import find_kernels

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
COMPILED = (
    "gemm/naive", "gemm/register_blocked", "scan/scan_bundles", "cp/cp", "jacobi2d/sweep",
    "dense_solve/transpose_padded", "fractal/mandelbrot", "mri_gridding/binning",
    "nbody/nbody", "blackscholes/blackscholes",
)  # fmt: skip
TRACED = ("jacobi2d/sweep", "fractal/mandelbrot", "scan/scan_bundles")
TRACED_GROUPS = 3000
ATTRIBUTES = (
    "compute_capability_major_nv", "compute_capability_minor_nv", "registers_per_block_nv",
    "warp_size_nv", "gpu_overlap_nv", "kernel_exec_timeout_nv", "integrated_memory_nv",
    "attribute_async_engine_count_nv", "pci_bus_id_nv", "pci_slot_id_nv", "topology_amd",
    "board_name_amd", "simd_per_compute_unit_amd", "simd_width_amd",
    "simd_instruction_width_amd", "wavefront_width_amd", "global_mem_channels_amd",
    "global_mem_channel_banks_amd", "local_mem_size_per_compute_unit_amd",
    "local_mem_banks_amd", "gfxip_major_amd", "gfxip_minor_amd", "available_async_queues_amd",
    "preferred_work_group_size_amd", "max_work_group_size_amd", "max_num_sub_groups",
    "sub_group_independent_forward_progress", "max_clock_frequency", "global_mem_cache_size",
    "global_mem_cacheline_size", "global_mem_cache_type", "local_mem_type", "extensions",
    "profiling_timer_resolution", "non_uniform_work_group_support",
    "preferred_work_group_size_multiple",
)  # fmt: skip
LOCAL_SIZES = ((32, 2), (32, 8), (64, 4), (128, 1), (256, 1), (16, 16))
_MOST_TEXT = 20_000


@dataclass
class Notes:
    """What a step has found, in a file after every note."""

    path: Path
    held: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, value: object) -> None:
        """Keep a value under a name."""
        self.held[name] = value
        beside = self.path.with_suffix(".part")
        beside.write_text(json.dumps(self.held, default=_plain) + "\n", encoding="utf-8")
        beside.replace(self.path)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Go on with the next part where one fails, and keep why."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - an hour is too short to stop for one error
            found = self.held.get(name)
            known = found if isinstance(found, dict) else {}
            self.add(name, {**known, "error": f"{type(error).__name__}: {error}"[:2000]})


def _plain(value: object) -> object:
    """Write what JSON has no form for."""
    if isinstance(value, Trait):
        return {"value": value.value, "source": str(value.source)}
    with contextlib.suppress(Exception):
        return to_plain(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def measure(step: str, device: str, path: Path) -> None:
    """Measure one step, and leave what is found in a file."""
    notes = Notes(path)
    description, handle = choose_device(device, find_devices())
    notes.add("device_id", description.id)
    session = open_session(description, handle)
    _STEPS[step](session, notes)


def measure_device(session: DeviceSession, notes: Notes) -> None:
    """Note what the driver says, how events are timed, what the probes find."""
    notes.add("description", session.description)
    notes.add("attributes", {name: _ask(session.device, name) for name in ATTRIBUTES})
    notes.add("timer", check_device(session.description, session.device))
    notes.add("uses_event_timer", session.uses_event_timer)
    with notes.part("behaviour"):
        began_s = time.perf_counter()
        behaviour = session.behaviour
        notes.add("behaviour", behaviour)
        notes.add("behaviour_took_s", time.perf_counter() - began_s)
    with notes.part("empty_launches"):
        notes.add("empty_launch_s", [session.probe.time_nothing() for _ in range(5)])
    with notes.part("probe_steps"):
        per_unit = session.description.compute_units
        counts = sorted({1, 2, 4, 8, 16, 32, *(per_unit * k for k in (1, 2, 4, 8, 16, 32))})
        notes.add("probe_steps", [
            {"work_groups": n, "seconds": [
                session.probe.run((n,), steps=session.behaviour.settle_steps).duration_s
                for _ in range(5)
            ]}
            for n in counts if n <= 4096
        ])  # fmt: skip


def _ask(device: object, name: str) -> object:
    try:
        found = getattr(device, name)
    except Exception as error:  # noqa: BLE001 - every driver refuses in its own way
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return found if isinstance(found, int | float | str | bool) else repr(found)


def corpus_problem(name: str, parameters: Mapping[str, int] | None = None) -> Problem:
    """Give a corpus kernel's problem at its first local size."""
    [kernel] = find_kernels(name)
    folder = Path(tempfile.gettempdir()) / "kernelcast-first-hour"
    return prepare_launch(
        kernel, dict(parameters or {}), local_size=kernel.local_sizes[0], cache_folder=folder
    ).problem


def measure_compiler(session: DeviceSession, notes: Notes) -> None:
    """Note build logs, PTX, compiler facts, and P_sat by the rules and by counting."""
    is_nvidia = "cl_nv_compiler_options" in session.description.extensions
    for name in COMPILED:
        with notes.part(name):
            problem = corpus_problem(name)
            kernel = problem.kernel
            found: dict[str, Any] = {"local_size": problem.ndrange.local_size}
            options = (*kernel.build_options, *(["-cl-nv-verbose"] if is_nvidia else []))
            program = build_program(
                session.context, session.device, make_unique(kernel.source, str(time.time_ns())),
                options,
            )  # fmt: skip
            found["build_log"] = read_build_log(program, session.device)[:_MOST_TEXT]
            binaries = _ask_binaries(program)
            found["binary_bytes"] = [len(one) for one in binaries]
            found["binary_head"] = [one[:400].decode("latin-1") for one in binaries]
            if is_nvidia:
                found["ptx"] = binaries[0][:_MOST_TEXT].decode("latin-1")
            notes.add(name, found)
            found["facts"] = read_compiler_facts(session, kernel, problem.ndrange)
            with prepared_launch(session, problem, OpenCLLaunch, seed=0) as launch:
                found["saturation"] = launch.saturation
                found["saturation_disagreement"] = launch.saturation.disagreement
            notes.add(name, found)


def _ask_binaries(program: Any) -> list[bytes]:  # noqa: ANN401 - pyopencl's, which is not imported
    try:
        return list(program.binaries)
    except Exception:  # noqa: BLE001 - a driver may have none to give
        return []


def measure_dispatch(session: DeviceSession, notes: Notes) -> None:
    """Note in which order work-groups start and end, and how many are active."""
    with notes.part("tickets"):
        tickets = session.probe.run((64, 64), steps=500).tickets
        notes.add("tickets_64x64", tickets)
        notes.add("order", session.behaviour.order)
    for name in TRACED:
        with notes.part(name):
            settings = TraceSettings(work_groups=TRACED_GROUPS)
            notes.add(name, trace_in_session(session, corpus_problem(name), settings))


def measure_calibration(session: DeviceSession, notes: Notes) -> None:
    """Run every microbenchmark; each is kept in the machine description at once."""
    path = machine_path(session.description.id)
    notes.add("path", path.name)
    for name in list_benchmarks():
        with notes.part(name):
            settings = CalibrationSettings(effort=Effort.QUICK, only=(name,), is_fresh=True)
            found = calibrate_device(session.description, settings)
            notes.add(name, {"seconds": found.durations_s, "failed": found.failed})
            notes.add("machine", path.read_text(encoding="utf-8"))


def measure_stencils(session: DeviceSession, notes: Notes) -> None:
    """Compare the GPU model's volumes and times of stencils with whole runs."""
    machine = find_own_machine(session.description.id)
    for example in ("stencil2d", "stencil3d"):
        problem = read_problem(EXAMPLES / example / f"{example}.yaml")
        dimensions = problem.ndrange.dimensions
        for sides in LOCAL_SIZES:
            local = (*sides, *(1,) * (dimensions - 2))[:dimensions]
            name = f"{example} {'x'.join(map(str, local))}"
            with notes.part(name):
                notes.add(name, _compare_stencil(session, problem, local, machine, notes, name))


def _compare_stencil(
    session: DeviceSession,
    problem: Problem,
    local: tuple[int, ...],
    machine: Any,  # noqa: ANN401 - a description, or nothing
    notes: Notes,
    name: str,
) -> Mapping[str, Any]:
    shape = tuple(
        -(-n // side) * side for n, side in zip(problem.ndrange.global_size, local, strict=True)
    )
    ndrange = NDRange(
        global_size=shape, local_size=local, global_offset=problem.ndrange.global_offset
    )
    own = replace(problem, ndrange=ndrange)
    found: dict[str, Any] = {}
    with prepared_launch(session, own, OpenCLLaunch, seed=0) as launch:
        found["whole_s"] = [launch.time_whole() for _ in range(5)]
    notes.add(name, found)
    if machine is None:
        return {**found, "model": "no machine description: run the calibration first"}
    found["model"] = estimate_gpu(model_launch(own, ndrange), machine)
    return found


_STEPS: Mapping[str, Callable[[DeviceSession, Notes], None]] = {
    "device": measure_device,
    "compiler": measure_compiler,
    "dispatch": measure_dispatch,
    "sampling": lambda session, notes: measure_sampling(session, notes.add, notes.part),
    "write_back": lambda session, notes: measure_write_back(session, notes.add, notes.part),
    "calibration": measure_calibration,
    "stencils": measure_stencils,
}
