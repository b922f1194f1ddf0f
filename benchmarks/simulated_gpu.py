"""The sampling paper on a simulated GPU: linear error, what corrects it, and the learned hybrid.

Run ``python -m benchmarks simulated_gpu``; it takes a minute and no device. Launches of 37 kernels
on a V100 cut to 5 compute units (`support.simulated_gpu`) are replayed: the two-point
formula by sampling points and by what the caches hold, then step by step what the source knows of
volumes, borders and uneven work, then an epsilon-SVR that has not seen the kernel. Writes
``results/simulated_gpu/results.json``, ``summary.md`` and the pictures.
"""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from simulated_gpu_cases import (
    Case,
    Sample,
    correct,
    make_cases,
    sample_first,
    sample_timeline,
    sample_typical,
    sample_windows,
)
from simulated_gpu_learning import make_rows, predict_left_out
from simulated_gpu_report import draw, write_summary

from kernelcast.models.linear import two_point
from support.simulated_gpu import SimulatedKernel, load_simulated_kernels

FOLDER = Path(__file__).resolve().parent / "results" / "simulated_gpu"
PAIRS = ((1, 2), (1, 3), (2, 3), (2, 4), (3, 4))
PROTOCOLS = {"2 and 3 P_sat": (2, 3), "one launch of 4 P_sat, with its timeline": None}


def main() -> None:
    """Replay everything and write what is found."""
    began_s = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        cases = make_cases(load_simulated_kernels(), Path(folder))
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "simulator": cases[0].kernel.gpu.simulator,
        "device": cases[0].kernel.gpu.description,
        "volumes": [compare_volumes(case) for case in cases],
        "states": compare_states(cases),
        "windows": [compare_windows(case, cases) for case in cases],
        "steps": {name: follow_steps(cases, points) for name, points in PROTOCOLS.items()},
    }
    result["cpu_s"] = round(time.process_time() - began_s, 1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=1) + "\n"
    (FOLDER / "results.json").write_text(text, encoding="utf-8")
    write_summary(FOLDER / "summary.md", result)
    draw(FOLDER, result, cases)


def compare_volumes(case: Case) -> Mapping[str, Any]:
    """Compare what the whole launch writes back, by the model and by the simulator's counter."""
    written = case.volumes.count_written_bytes(case.kernel.work_groups) / 32
    return {
        "kernel": case.kernel.name,
        "is_from_source": case.is_from_source,
        "clean_p_sat": case.volumes.clean_work_groups / case.unit,
        "written_sectors": written,
        "simulated_sectors": case.whole.counters["dram_written_sectors"],
        "stored_sectors": case.volumes.stored_bytes * case.kernel.work_groups / 32,
    }


def compare_states(cases: Sequence[Case]) -> list[Mapping[str, Any]]:
    """Give the two-point formula's errors by sampling points and by what the caches held."""
    rows: list[Mapping[str, Any]] = []
    for a, b in PAIRS:
        for state, errors in (
            ("first work-groups, empty caches", _first_errors(cases, a, b, is_clean=True)),
            ("first work-groups, after the last ones", _dirty_errors(cases, a, b)),
            ("warmed windows, mean of all places", _window_errors(cases, a, b)),
        ):
            if errors:
                rows.append({"points": [a, b], "state": state, **summarise(errors)})
    return rows


def _first_errors(cases: Sequence[Case], a: int, b: int, *, is_clean: bool) -> dict[str, float]:
    return {
        case.kernel.name: _error(
            sample_first(case, a, b).reach(case.kernel.work_groups), case.whole.cycles
        )
        for case in cases
        if (case.whole.warmed_by is None) == is_clean
    }


def _dirty_errors(cases: Sequence[Case], a: int, b: int) -> dict[str, float]:
    """Sample the first work-groups after the last: L2 is full of what must be written back."""
    found = {}
    for case in cases:
        kernel = case.kernel
        for whole in kernel.runs:
            if whole.work_groups == kernel.work_groups and whole.warmed_by is not None:
                found[kernel.name] = _error(_reach(kernel, whole.warmed_by, a, b), whole.cycles)
    return found


def _reach(kernel: SimulatedKernel, warmth: tuple[int, int], a: int, b: int) -> float:
    unit = kernel.concurrency
    short, long = (kernel.require(0, k * unit, warmth).cycles for k in (a, b))
    return two_point(short, long, a * unit, b * unit, kernel.work_groups)


def _window_errors(cases: Sequence[Case], a: int, b: int) -> dict[str, float]:
    found = {}
    for case in cases:
        short, long = case.kernel.list_windows(a), case.kernel.list_windows(b)
        if short and long and len(short) == len(long):
            first, second = (float(np.mean([one.cycles for one in runs])) for runs in (short, long))
            points = (a * case.unit, b * case.unit)
            seconds = two_point(first, second, *points, case.kernel.work_groups)
            found[case.kernel.name] = _error(seconds, case.whole.cycles)
    return found


def compare_windows(case: Case, cases: Sequence[Case]) -> Mapping[str, Any]:
    """Give errors of warmed windows at all places: the plain line, and with work and volumes."""
    plain = sample_windows(case, is_weighed=False)
    weighed = sample_windows(case, is_weighed=True)
    if plain is None or weighed is None:
        return {"kernel": case.kernel.name}
    return {
        "kernel": case.kernel.name,
        "places": len(case.kernel.list_windows(4)),
        "has_clean_whole": case.whole.warmed_by is None,
        "linear": _error(plain.reach(case.kernel.work_groups), case.whole.cycles),
        "work": _error(weighed.reach(case.total), case.whole.cycles),
        "volumes": _error(correct(case, weighed, cases).seconds, case.whole.cycles),
    }


def follow_steps(cases: Sequence[Case], points: tuple[int, int] | None) -> Mapping[str, Any]:
    """Follow the errors from the plain line to the learned hybrid."""
    first = [
        sample_timeline(case, 4) if points is None else sample_first(case, *points)
        for case in cases
    ]
    chosen = [
        one if case.are_all_alike else sample_typical(case)
        for case, one in zip(cases, first, strict=True)
    ]
    steps = {
        "linear": [one.reach(case.kernel.work_groups) for case, one in _pair(cases, first)],
        "and volumes": [
            correct(case, one, cases).seconds if case.are_all_alike
            else one.reach(case.kernel.work_groups)
            for case, one in _pair(cases, first)
        ],
        "and borders, uneven work": [
            correct(case, one, cases).seconds for case, one in _pair(cases, chosen)
        ],
        "work without volumes": [one.reach(case.total) for case, one in _pair(cases, chosen)],
    }  # fmt: skip
    errors = {
        name: {
            case.kernel.name: _error(one, case.whole.cycles)
            for case, one in zip(cases, seconds, strict=True)
        }
        for name, seconds in steps.items()
    }
    for name, is_corrected in (("and SVR", True), ("SVR without volumes", False)):
        table = make_rows(cases, chosen, is_corrected=is_corrected)
        left_out = predict_left_out(table, is_gated=True)
        errors[name] = dict(zip(table.kernels, left_out / table.seconds - 1, strict=True))
    costs = {
        name: float(np.mean([one.cost_p_sat for one in samples]))
        for name, samples in (("first", first), ("chosen", chosen))
    }
    return {"cost_p_sat": costs, "errors": errors} | {
        "summary": {name: summarise(one) for name, one in errors.items()}
    }


def _pair(cases: Sequence[Case], samples: Sequence[Sample]) -> list[tuple[Case, Sample]]:
    return list(zip(cases, samples, strict=True))


def _error(predicted: float, measured: float) -> float:
    return predicted / measured - 1


def summarise(errors: Mapping[str, float]) -> Mapping[str, Any]:
    """Give mean, median and worst of the absolute errors."""
    worst = max(errors, key=lambda name: abs(errors[name]))
    absolute = np.abs(list(errors.values()))
    return {
        "kernels": len(errors),
        "mean": float(absolute.mean()),
        "median": float(np.median(absolute)),
        "worst": errors[worst],
        "worst_kernel": worst,
    }


if __name__ == "__main__":
    main()
