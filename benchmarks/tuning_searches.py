"""Searches that know no model, simulated from measured times: random, and Kernel Tuner's."""

import contextlib
import io
import json
import math
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tuning_measurements import Measured

REPEATS = 11
STRATEGIES = ("random_sample", "bayes_opt")
_MILLISECONDS = 1e3


def expect_random(measured: Measured, count: int) -> float:
    """Give the median share of the best that so many random configurations reach.

    Notes
    -----
    Exact: the best of `count` without repeats is at least the k-th best with probability
    ``1 - C(n - k, count) / C(n, count)``.
    """
    ordered = sorted(measured.seconds.values())
    total = len(ordered)
    drawn = min(count, total)
    for place, seconds in enumerate(ordered, start=1):
        missed = math.comb(total - place, drawn) / math.comb(total, drawn)
        if 1 - missed >= 0.5:
            return ordered[0] / seconds
    return ordered[0] / ordered[-1]


def count_affordable(measured: Measured, budget_s: float) -> int:
    """Count the configurations that can be measured in a time, at their mean cost; at least 1."""
    numbers = list(measured.seconds)
    mean_s = measured.cost_s(numbers) / len(numbers)
    return max(1, min(len(numbers), round(budget_s / mean_s)))


def simulate_kernel_tuner(measured: Measured, strategy: str, count: int) -> float | None:
    """Give the median share of the best that a search of Kernel Tuner reaches.

    Parameters
    ----------
    measured : Measured
        Its measurements stand in a cache file; nothing runs.
    strategy : str
        One of `STRATEGIES`.
    count : int
        Configurations that it may measure.

    Returns
    -------
    float or None
        None where Kernel Tuner is not installed.
    """
    try:
        import kernel_tuner
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        content = make_cache(measured)
        cache.write_text(json.dumps(content), encoding="utf-8")
        known = frozenset(content["cache"])
        wishes = ((strategy, count, seed) for seed in range(REPEATS))
        return median(_search(kernel_tuner, measured, one, cache, known) for one in wishes)


def make_cache(measured: Measured) -> dict[str, Any]:
    """Write measurements as Kernel Tuner's cache file; times are in milliseconds."""
    values = _list_values(measured)
    entries = {}
    for number, parameters in measured.parameters.items():
        if number not in measured.seconds:
            continue
        key = ",".join(str(parameters[name]) for name in measured.names)
        entries[key] = {
            **{name: parameters[name] for name in measured.names},
            "time": measured.seconds[number] * _MILLISECONDS,
            "times": [measured.seconds[number] * _MILLISECONDS],
            "compile_time": measured.build_s[number] * _MILLISECONDS,
            "verification_time": 0,
            "benchmark_time": measured.run_s[number] * _MILLISECONDS,
            "strategy_time": 0,
            "framework_time": 0,
            "timestamp": "2000-01-01 00:00:00",
        }
    return {
        "device_name": "saved",
        "kernel_name": measured.name,
        "problem_size": [1],
        "tune_params_keys": list(measured.names),
        "tune_params": values,
        "objective": "time",
        "cache": entries,
    }


def _list_values(measured: Measured) -> dict[str, list[float]]:
    return {
        name: sorted({one[name] for one in measured.parameters.values()})
        for name in measured.names
    }  # fmt: skip


def _search(
    kernel_tuner: Any,  # noqa: ANN401 - a package without types
    measured: Measured,
    wish: tuple[str, int, int],
    cache: Path,
    known: Sequence[str] | frozenset[str],
) -> float:
    import numpy as np

    strategy, count, seed = wish
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - Kernel Tuner draws from it
    options: dict[str, Any] = {"max_fevals": count}
    if strategy == "bayes_opt":
        options["popsize"] = max(2, min(20, count // 2))
    names = measured.names

    def is_known(parameters: dict[str, float]) -> bool:
        return ",".join(str(parameters[name]) for name in names) in known

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found, _ = kernel_tuner.tune_kernel(
            measured.name,
            f"__kernel void {measured.name}() {{}}",
            (1,),
            [],
            _list_values(measured),
            restrictions=is_known,
            strategy=strategy,
            strategy_options=options,
            simulation_mode=True,
            cache=str(cache),
            lang="OpenCL",
            quiet=True,
        )
    times = [one["time"] for one in found if isinstance(one.get("time"), int | float)]
    return measured.best_s * _MILLISECONDS / min(times) if times else 0.0
