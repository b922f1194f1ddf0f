"""What the steps of `nine_minutes.py` measure; each runs in a process of its own."""

import argparse
import contextlib
import csv
import ctypes
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from nine_minutes import HERE, STEPS, Measurements
from nine_minutes_kernels import (
    STREAM_LOCAL,
    STRIDES,
    list_configurations,
    list_stencils,
    make_stream,
    make_stride,
)

from kernelcast.calibration.calibration import (
    CalibrationSettings,
    Effort,
    calibrate_device,
    list_benchmarks,
)
from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.launches.machines import machine_path
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.tracing import TraceSettings, trace_in_session
from kernelcast.launches.weighing import find_active_groups
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import KernelRunError
from kernelcast.records.plain import to_plain
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.host import read_processor_times, read_state_since
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.plan import box_near, position_of, spread_positions
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training_data.applications import find_kernels, load_input_maker

# Streams, stencils, products, borders, uneven work, data-dependent work: what matters first.
FIRST = (
    "dense_solve/transpose_padded", "jacobi2d/sweep", "gemm/naive", "fractal/mandelbrot",
    "heat3d/heat_points", "scan/scan_bundles", "transpose/transpose_naive", "gemm/syrk",
    "dot_product/dot_product", "npb_lu/setiv", "reductions/sum_divergent", "cp/cp",
    "dense_solve/rank_one_update", "npb_ft/evolve", "mri_gridding/binning",
    "radix_sort/reorder_data_keys", "sad/calc_16", "image_filters/clahe_map",
    "sorting_networks/merge_global", "reductions/extremes_atomic",
)  # fmt: skip
TRACED = (
    "jacobi2d/sweep", "fractal/mandelbrot", "scan/scan_bundles", "gemm/naive",
    "transpose/transpose_naive",
)  # fmt: skip
ANSWERED = (
    "stencil2d/stencil2d", "matmul_tiled/matmul_tiled", "mandelbrot/mandelbrot", "triad/triad",
    "nbody/nbody", "spmv_csr/spmv_csr",
)  # fmt: skip
MULTIPLES = (2, 3, 4)
"""Of P_sat: lengths of windows."""
PLACES, ROUNDS, WHOLE_RUNS = 4, 3, 5
_SAMPLED_KERNELS = 60
_COUNTED_KERNELS = 40
_COUNTED_TOGETHER = 8
_LONGEST_S = 0.4  # a whole run of more is run twice, in one round
_FLUSH_BYTES = 128 << 20  # more than the largest L2 cache of today
_LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_TRACED_GROUPS = 9000
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
COUNTERS = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_written_bytes": "dram__bytes_write.sum",
    "l2_read_bytes": "lts__t_sectors_op_read.sum",
    "l2_written_bytes": "lts__t_sectors_op_write.sum",
    "l1_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1_load_hits": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "l1_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "warp_instructions": "smsp__inst_executed.sum",
    "fma_instructions": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "registers": "launch__registers_per_thread",
    "seconds": "gpu__time_duration.sum",
}
ATTRIBUTES = (
    "compute_capability_major_nv", "compute_capability_minor_nv", "warp_size_nv",
    "max_clock_frequency", "global_mem_size", "local_mem_size", "driver_version", "version",
)  # fmt: skip


@dataclass(kw_only=True)
class Run:
    """What measures one step."""

    work: Path
    prepared: Path | None
    wanted_device: str
    most: int
    is_small: bool

    @cached_property
    def session(self) -> DeviceSession:
        found = find_devices()
        if self.wanted_device:
            return open_session(*choose_device(self.wanted_device, found))
        return open_session(*([one for one in found if one[0].kind is DeviceKind.GPU] or found)[0])

    def problem(self, name: str, size: int) -> Problem:
        """Make a corpus kernel's problem at the first, or second, size planned for it."""
        [kernel] = find_kernels(name)
        parameters = self.plan.get(name, {}).get("sizes", [{}])
        chosen = {kernel.size.parameter: kernel.size.least} if self.is_small else {}
        return prepare_launch(
            kernel, chosen or parameters[min(size, len(parameters) - 1)],
            local_size=kernel.local_sizes[0], cache_folder=self.work / "inputs",
        ).problem  # fmt: skip

    @cached_property
    def plan(self) -> dict[str, Any]:
        path = self.prepared / "plan.json" if self.prepared else None
        return json.loads(path.read_text(encoding="utf-8")) if path else {}

    @cached_property
    def other_data(self) -> Any:  # noqa: ANN401 - a buffer
        """What drives everything else out of the caches when it is read, and leaves them clean."""
        size = min(_FLUSH_BYTES, 16 << 20) if self.is_small else _FLUSH_BYTES
        return cl.Buffer(self.session.context, cl.mem_flags.READ_WRITE, size=size)

    def read_clock(self) -> float | None:
        name = self.session.description.name
        return read_state_since(read_processor_times(), gpu=name).clock_hz


def order_kernels() -> list[str]:
    """List the corpus's kernels, in order of worth: the chosen ones, then one per application."""
    by_application: dict[str, list[str]] = {}
    for kernel in find_kernels():
        if kernel.name not in FIRST:
            by_application.setdefault(kernel.application, []).append(kernel.name)
    ranked = [
        (rank, name) for names in by_application.values() for rank, name in enumerate(names)
    ]  # fmt: skip
    return [*FIRST, *(name for _, name in sorted(ranked))]


def measure_device(run: Run, item: str) -> Mapping[str, Any]:
    if item != "facts":
        return sample_kernel(run, run.problem(item.removeprefix("trial "), 0), rounds=1)
    session = run.session
    return {
        "description": to_plain(session.description),
        "attributes": {name: str(getattr(session.device, name, "")) for name in ATTRIBUTES},
        "uses_event_timer": session.uses_event_timer,
        "behaviour": {
            "launch_overhead_s": session.trial.launch_overhead_s,
            "settled_s": session.trial.settled_s,
        },
        "clock_hz": run.read_clock(), "python": sys.version,
        "packages": sorted({f"{one.name} {one.version}" for one in distributions()}),
        "nvidia_smi": _ask("nvidia-smi"), "ncu": _ask("ncu", "--version"),
    }  # fmt: skip


def _ask(*command: str) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=False
        ).stdout  # fmt: skip
    return ""


def measure_saturation(run: Run, item: str) -> Mapping[str, Any]:
    """Note P_sat by the driver and by rules, and what the compiler made of a kernel."""
    session, problem = run.session, run.problem(item, 0)
    ndrange = problem.ndrange
    built: Any = session.whole_kernel(problem.kernel).kernel
    found: dict[str, Any] = {"local_size": list(ndrange.known_local_size)}
    if hasattr(built, "count_active_work_groups"):
        found |= {
            "by_driver": built.count_active_work_groups(ndrange.work_group_size),
            "registers": built.ask("NUM_REGS"), "shared_bytes": built.ask("SHARED_SIZE_BYTES"),
            "local_bytes": built.ask("LOCAL_SIZE_BYTES"),
        }  # fmt: skip
    with prepared_launch(session, problem, seed=0) as launch:
        saturation = launch.saturation
        found |= {
            "work_groups": launch.ndrange.work_group_count, "by_rules": saturation.computed,
            "measured": saturation.measured, "p_sat": saturation.p_sat.value,
            "limiter": saturation.limiter, "units": launch.device.compute_units,
        }  # fmt: skip
    return found


def list_sampling(run: Run, first: int, sizes: int) -> list[str]:
    del run
    names = order_kernels()[first : first + _SAMPLED_KERNELS]
    return [f"{name} {size}" for size in range(sizes) for name in names]


def measure_sampling(run: Run, item: str) -> Mapping[str, Any]:
    name, size = item.rsplit(" ", 1)
    return sample_kernel(run, run.problem(name, int(size)), rounds=ROUNDS)


def sample_kernel(
    run: Run, problem: Problem, *, rounds: int, whole_runs: int = WHOLE_RUNS
) -> dict[str, Any]:
    """Time windows of 2 to 4 P_sat, cold and behind a warm-up, and whole runs around them."""
    with prepared_launch(run.session, problem, seed=0) as launch:
        ndrange = launch.ndrange
        unit, total = launch.saturation.concurrency, ndrange.work_group_count
        active = find_active_groups(replace(problem, ndrange=ndrange))
        launch.warm_up(box_near(total // 2, 1, ndrange.group_counts))
        launch.settle()
        launch.time_whole()
        found: dict[str, Any] = {
            "global_size": list(ndrange.global_size), "local_size": list(ndrange.known_local_size),
            "work_groups": total, "unit": unit, "units": launch.device.compute_units,
            "active": to_plain(active) if active else None,
            "launch_overhead_s": launch.launch_overhead_s, "whole": [], "clock_hz": [],
            "windows": [],
        }  # fmt: skip
        fits = total >= (1 + MULTIPLES[-1]) * unit

        def time_whole() -> None:
            found["whole"].append(float(launch.time_whole()))
            found["clock_hz"].append(run.read_clock())

        time_whole()
        for round_ in range(rounds if found["whole"][0] < _LONGEST_S else 1):
            if fits:
                found["windows"] += _time_windows(run, launch, unit, round_)
            time_whole()
        while len(found["whole"]) < whole_runs and found["whole"][0] < _LONGEST_S:
            time_whole()
    return found


def _time_windows(
    run: Run, launch: OpenCLLaunch, unit: int, round_: int
) -> list[tuple[int, int, int, int, int, float]]:
    """Time windows: round, place, multiple, whether warmed, work-groups, seconds."""
    counts, total = launch.ndrange.group_counts, launch.ndrange.work_group_count
    longest = (1 + MULTIPLES[-1]) * unit
    rows = []
    launch.settle()
    for place, position in enumerate(spread_positions(PLACES, counts, shift=round_)):
        begin = max(0, min(position, total - longest))
        for multiple in MULTIPLES:
            warm = box_near(begin, unit, counts)
            behind = position_of(warm, counts) + warm.work_group_count
            box = box_near(behind, multiple * unit, counts)
            for is_warmed in (False, True):
                run.session.touch([(run.other_data, run.other_data.size)], 32)
                *_, seconds = launch.time_boxes([warm, box] if is_warmed else [box])
                rows.append(
                    (round_, place, multiple, int(is_warmed), box.work_group_count, float(seconds))
                )
    return rows


def list_counters(run: Run) -> list[str]:
    """List groups of launches that are counted together: starting the profiler takes seconds."""
    stencils = (one.name for one in list_stencils(is_small=run.is_small))
    pairs = zip(order_kernels()[:_COUNTED_KERNELS], stencils, strict=True)
    names = [name for pair in pairs for name in pair]
    return [
        "|".join(names[begin : begin + _COUNTED_TOGETHER])
        for begin in range(0, len(names), _COUNTED_TOGETHER)
    ]


def _problem_to_count(run: Run, name: str) -> Problem:
    stencils = {one.name: one for one in list_stencils(is_small=run.is_small)}
    return stencils.get(name) or run.problem(name, 0)


def measure_counters(run: Run, item: str) -> Mapping[str, Any]:
    names = item.split("|")
    functions = [_problem_to_count(run, name).kernel.name for name in names]
    profiler = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    command = [
        profiler, "--csv", "--page", "raw", "--metrics", ",".join(COUNTERS.values()),
        "--clock-control", "none", "--kernel-name", f"regex:^({'|'.join(sorted({*functions}))})$",
        sys.executable, __file__, *sys.argv[1:-3], "--count", json.dumps(names),
    ]  # fmt: skip
    if run.is_small and not Path(profiler).exists():
        command = command[command.index(sys.executable) :]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelRunError(f"{done.stdout[-800:]}\n{done.stderr[-800:]}")
    return {
        "names": names, "functions": functions, "kernels": _read_counters(done.stdout),
        "message": done.stderr[-1000:],
    }  # fmt: skip


def _read_counters(said: str) -> list[dict[str, Any]]:
    lines = [line for line in said.splitlines() if line.startswith('"')]
    if not lines:
        return []
    units, *rows = csv.DictReader(io.StringIO("\n".join(lines)))
    return [
        {"kernel": row["Kernel Name"]}
        | {name: [row.get(counter), units.get(counter)] for name, counter in COUNTERS.items()}
        for row in rows
    ]


def make_inputs(run: Run) -> None:
    """Make, on all processors, the inputs that programs of the corpus make, before they are due."""
    items = [(name, size) for size in (0, 1) for name in order_kernels()[: 2 * _SAMPLED_KERNELS]]
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 1) - 4)) as processes:
        for made in [processes.submit(_make_input, run.work, run.prepared, *one) for one in items]:
            with contextlib.suppress(Exception):  # the step that needs it says why it cannot be
                made.result()


def _make_input(work: Path, prepared: Path | None, name: str, size: int) -> None:
    [kernel] = find_kernels(name)
    if load_input_maker(kernel) is not None:
        Run(work=work, prepared=prepared, wanted_device="", most=0, is_small=False).problem(
            name, size
        )


def count_launches(run: Run, names: Sequence[str]) -> None:
    for name in names:
        try:
            problem = _problem_to_count(run, name)
            with prepared_launch(run.session, problem, seed=0) as launch:
                launch.time_whole()
        except KernelRunError:
            raise
        except Exception as error:  # noqa: BLE001 - the others count
            print(f"{name}: {error}", file=sys.stderr)


def measure_ladders(run: Run, item: str) -> Mapping[str, Any]:
    """Time windows of a copy or a read after reads, which leave L2 clean, or after stores."""
    timed, before = item.split(" after ")
    count = (1 << 20) if run.is_small else (64 << 20)
    session, rows = run.session, []
    with (
        prepared_launch(session, make_stream(f"kc_{timed}", count), seed=0) as ladder,
        prepared_launch(session, make_stream(f"kc_{before}", count), seed=1) as first,
    ):
        unit, total = ladder.saturation.concurrency, ladder.ndrange.work_group_count
        half = box_near(total // 2, total // 2, (total,))
        for multiple in _LADDER:
            if multiple * unit <= total // 2:
                times = []
                for _ in range(ROUNDS):
                    first.time_boxes([half])
                    times += ladder.time_boxes([box_near(0, multiple * unit, (total,))])
                rows.append([multiple, list(map(float, times))])
        whole = [float(ladder.time_whole()) for _ in range(ROUNDS)]
    return {
        "unit": unit, "work_groups": total, "local_size": STREAM_LOCAL, "rows": rows,
        "whole": whole, "clock_hz": run.read_clock(),
    }  # fmt: skip


def list_memory(run: Run) -> list[str]:
    """List what tells of memory and launches first, then the other microbenchmarks."""
    del run
    names = list(list_benchmarks())
    urgent = ["caches", "bandwidth", "launch", "dispatch", "clock", "latency"]
    first = [name for name in urgent if name in names]
    more = [name for name in names if name not in first and name != "transfers"]
    return [*first, "occupancy", "strides", *more]


def measure_memory(run: Run, item: str) -> Mapping[str, Any]:
    if item == "strides":
        groups = 64 if run.is_small else 132 * 16
        return {"seconds": {stride: _time_whole(run, make_stride(stride, groups))[1]
                            for stride in STRIDES}, "work_groups": groups}  # fmt: skip
    if item == "occupancy":
        limit = run.session.description.local_memory_bytes
        count = (1 << 18) if run.is_small else (64 << 20)
        return {"bytes": 4 * count, "rows": [
            [name, parts, *_time_whole(run, make_stream(name, count, ballast_bytes=limit // parts))]
            for name in ("kc_read", "kc_copy") for parts in (1, 2, 3, 4, 5, 6, 8, 16)
        ]}  # fmt: skip
    description = run.session.description
    settings = CalibrationSettings(effort=Effort.QUICK, only=(item,), is_fresh=True)
    found = calibrate_device(description, settings)
    return {
        "seconds": dict(found.durations_s), "failed": dict(found.failed),
        "machine": machine_path(description.id).read_text(encoding="utf-8"),
    }  # fmt: skip


def _time_whole(run: Run, problem: Problem) -> tuple[int, list[float]]:
    with prepared_launch(run.session, problem, seed=0) as launch:
        times = [float(launch.time_whole()) for _ in range(ROUNDS)]
        return launch.saturation.concurrency, times


def measure_tuning(run: Run, item: str) -> Mapping[str, Any]:
    problems = {one.name: one for one in list_configurations(is_small=run.is_small)}
    return sample_kernel(run, problems[item], rounds=1, whole_runs=3)


def measure_dispatch(run: Run, item: str) -> Mapping[str, Any]:
    settings = TraceSettings(work_groups=64 if run.is_small else _TRACED_GROUPS)
    return to_plain(trace_in_session(run.session, run.problem(item, 0), settings))


def measure_answers(run: Run, item: str) -> Mapping[str, Any]:
    """Ask for an answer in a program of its own, as a user does; then run the launch."""
    application, name = item.split("/")
    path = HERE.parent / "examples" / application / f"{name}.yaml"
    command = [
        sys.executable, "-m", "kernelcast", "estimate", str(path), "--device",
        run.session.description.id, "--json",
    ]  # fmt: skip
    begun_s = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun_s
    return {
        "seconds": seconds, "answer": json.loads(done.stdout) if done.returncode == 0 else None,
        "message": done.stderr[-1000:],
        "whole": sample_kernel(run, read_problem(path), rounds=0)["whole"],
    }  # fmt: skip


_STEPS: dict[str, tuple[Callable[[Run], list[str]], Callable[[Run, str], Mapping[str, Any]]]] = {
    "device": (lambda _: ["facts", *(f"trial {name}" for name in FIRST[1:4])], measure_device),
    "saturation": (lambda _: order_kernels(), measure_saturation),
    "sampling": (lambda run: list_sampling(run, 0, 2), measure_sampling),
    "counters": (list_counters, measure_counters),
    "ladders": (
        lambda _: [f"{a} after {b}" for a in ("copy", "read") for b in ("read", "copy")],
        measure_ladders,
    ),
    "memory": (list_memory, measure_memory),
    "tuning": (
        lambda run: [one.name for one in list_configurations(is_small=run.is_small)],
        measure_tuning,
    ),
    "dispatch": (lambda _: list(TRACED), measure_dispatch),
    "answers": (lambda _: list(ANSWERED), measure_answers),
    "opencl": (
        lambda run: list(FIRST[:12]) if "NVIDIA" in run.session.description.platform else [],
        lambda run, item: sample_kernel(run, run.problem(item, 0), rounds=1, whole_runs=3),
    ),
    "more": (lambda run: list_sampling(run, _SAMPLED_KERNELS, 1), measure_sampling),
}
"""What lists a step's items, in order of worth, and what measures one."""


def measure_step(run: Run, name: str, measurements: Measurements, number: int, end_s: float) -> int:
    """Measure a step's items until the time is over; the process's exit status is returned. Where a
    kernel failed on the device, the process has to begin anew: errors of CUDA last."""
    list_items, measure = _STEPS[name]
    items = list_items(run)
    items = items[: run.most] if run.most else items
    measurements.append(step=name, item="", run=number, status="listed", count=len(items))
    over = measurements.list_over(name, number)
    for item in items:
        if item in over:
            continue
        if time.monotonic() > end_s:
            break
        measurements.append(step=name, item=item, run=number, status="begun")
        begun_s = time.perf_counter()
        status, result, message = "done", {}, ""
        is_fatal = False
        try:
            result = dict(measure(run, item))
        except Exception as error:  # noqa: BLE001 - nine minutes are too short to stop for one
            status, message = "failed", f"{type(error).__name__}: {error}"[:1500]
            is_fatal = isinstance(error, KernelRunError)
            traceback.print_exc()
        seconds = round(time.perf_counter() - begun_s, 3)
        measurements.append(
            step=name, item=item, run=number, status=status, seconds=seconds, result=result,
            message=message,
        )  # fmt: skip
        if is_fatal:
            return 3
    return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("step", nargs="?", choices=[step.name for step in STEPS])
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("seconds", nargs="?", type=float)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--prepared", default="")
    parser.add_argument("--device", default="")
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--count", default="")
    parser.add_argument("--inputs", action="store_true")
    options = parser.parse_args()
    with contextlib.suppress(AttributeError, OSError):  # end with the process that watches
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    end_s = time.monotonic() + (options.seconds or 0.0)
    run = Run(
        work=options.work, prepared=Path(options.prepared) if options.prepared else None,
        wanted_device=options.device, most=options.most, is_small=options.small,
    )  # fmt: skip
    if options.count:
        count_launches(run, json.loads(options.count))
        return
    if options.inputs:
        make_inputs(run)
        return
    measurements = Measurements(options.output / "measurements.jsonl")
    status = measure_step(run, options.step, measurements, options.number, end_s)
    sys.stdout.flush()
    os._exit(status)  # threads of drivers may not end


if __name__ == "__main__":
    main()
