"""Volumes of the V100 records: chooses constants on one half, reports errors on the other.

``python benchmarks/v100_volumes.py`` prints the errors and writes
``benchmarks/results/v100_stencil/volumes.json``; ``--fit`` also fits the constants of
``src/kernelcast/analytic/gpu/hit_rates.json`` anew, to the chosen half only. The share `a` of the
L1 cache is the reference implementation's; that of the store rate and its two other constants were
set by hand from the three narrow records of the chosen half (36 to 43 % of the second writes to a
sector miss at an oversubscription of 0.28 to 0.45) and the paper's remark that over 90 % of them
hit on the A100, where it is near 0.1.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from v100_records import ARRAY, GHOST_LAYERS, INTERIOR, StencilRecord, read_records, split_records

from kernelcast.analytic.gpu.hit_rates import (
    FUNCTIONS,
    HIT,
    HitRate,
    HitRates,
    find_hit_rates,
)
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes, dram
from kernelcast.launches.machines import find_machine
from support.stencils import make_star

TARGET = Path(__file__).parent / "results/v100_stencil/volumes.json"
MACHINE = read_machine(find_machine("v100"))
L1_LIMIT = 0.66
DISTANCES = (1.0, 1.25, 1.4, 1.45, 1.5, 1.55, 1.6, 1.75, 2.0)
REPEATS = 3
# Unknown of the runs: enough for 25 values, and the most that 1024 work-items can have.
REGISTERS = 64
FloatArray = npt.NDArray[np.float64]
Errors = Callable[[FloatArray], FloatArray]


def model(record: StencilRecord, rates: HitRates | None = None) -> GpuVolumes:
    """Compute the volumes of a record."""
    star = make_star(
        array=ARRAY, radius=GHOST_LAYERS, local_size=record.local_size, interior=INTERIOR,
        registers=REGISTERS,
    )  # fmt: skip
    return compute_volumes(star, MACHINE, rates)


def measure(record: StencilRecord) -> dict[str, float]:
    """Give the measured bytes per update; the counter of L2 writes sees more than L1's stores."""
    return {
        "L2_to_L1": record.l2_load,
        "DRAM_to_L2": record.dram_load,
        "L2_to_DRAM": record.dram_store,
        "L2_written": record.l2_store,
    }


def report(records: Sequence[StencilRecord]) -> dict[str, Any]:
    """Give mean absolute errors, and predicted and measured volumes per record."""
    rows: list[dict[str, Any]] = []
    seconds = []
    for record in records:
        times = []
        for _ in range(REPEATS):
            start = time.process_time()
            volumes = model(record)
            times.append(time.process_time() - start)
        seconds.append(min(times))
        predicted = volumes.per_update()
        predicted["L2_written"] = volumes.l2_written_bytes / volumes.updates
        rows.append({
            "local_size": record.local_size, "predicted": predicted, "measured": measure(record),
        })  # fmt: skip
    errors = {
        name: float(np.mean([abs(row["predicted"][name] / row["measured"][name] - 1)
                             for row in rows]))
        for name in measure(records[0])
    }  # fmt: skip
    return {
        "mean_absolute_errors": errors,
        "cpu_ms_median": 1e3 * float(np.median(seconds)),
        "records": rows,
    }


def solve(errors: Errors, start: Sequence[float], scale: float) -> tuple[FloatArray, float, float]:
    """Fit; give the constants, the mean error, and that of records left out one by one."""
    best = least_squares(errors, start, loss="soft_l1", f_scale=scale, x_scale="jac").x
    left_out = []
    for place in range(errors(best).size):
        kept = np.arange(errors(best).size) != place
        others = partial(_leave_out, errors, kept)
        other = least_squares(others, best, loss="soft_l1", f_scale=scale, x_scale="jac").x
        left_out.append(errors(other)[place])
    return best, float(np.abs(errors(best)).mean()), float(np.abs(left_out).mean())


def _leave_out(errors: Errors, kept: npt.NDArray[np.bool_], x: FloatArray) -> FloatArray:
    return errors(x)[kept]


def fit(chosen: Sequence[StencilRecord]) -> dict[str, Any]:
    """Fit the constants of L1 and L2 loads to the chosen half."""
    everything = [model(one) for one in chosen]

    def l1_errors(x: FloatArray) -> FloatArray:
        rate = HitRate(a=L1_LIMIT, b=float(np.exp(x[0])), c=float(x[1]))
        found = []
        for record, one in zip(chosen, everything, strict=True):
            l1 = one.l1
            redundant = l1.requested_bytes - l1.compulsory_bytes
            loads = l1.compulsory_bytes + redundant * (1 - rate.at(l1.oversubscription))
            found.append(loads * one.work_groups / one.updates / record.l2_load - 1)
        return np.array(found)

    found: dict[str, Any] = {}
    best, error, left_out = solve(l1_errors, [1.9, 1.1], 0.03)
    found["l1_load"] = {
        "b": float(np.exp(best[0])), "c": float(best[1]), "error": error, "left_out": left_out,
    }  # fmt: skip
    rows = []
    for distance in DISTANCES:
        errors = partial(dram_errors, chosen, everything, distance)
        best, error, left_out = solve(errors, [-7.15, 5.9], 0.02)
        rows.append({
            "reload_distance": distance, "b": float(np.exp(best[0])), "c": float(best[1]),
            "error": error, "left_out": left_out,
        })  # fmt: skip
    found["l2_overlap"] = rows
    return found


def dram_errors(
    chosen: Sequence[StencilRecord],
    everything: Sequence[GpuVolumes],
    distance: float,
    x: FloatArray,
) -> FloatArray:
    """Give relative errors of DRAM loads; partial stores as measured, so that they do not mix."""
    rate = HitRate(a=1.0, b=float(np.exp(np.clip(x[0], -50, 50))), c=float(x[1]), form=HIT)
    found = []
    for record, one in zip(chosen, everything, strict=True):
        wave = one.wave
        hits = sum(part.shared_bytes * rate.at(part.oversubscription) for part in wave.overlaps)
        over = distance * wave.skew_oversubscription * min(1.0, one.l1.oversubscription)
        reloads = one.l1.capacity_bytes * wave.work_groups * (1 - rate.at(over))
        loads = (wave.row_load_bytes - hits + reloads) * wave.waves / one.updates
        loads += record.dram_store - wave.unique_store_bytes * wave.waves / one.updates
        found.append(loads / record.dram_load - 1)
    return np.array(found)


def main() -> None:
    """Report, and fit where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="fit the constants to the chosen half")
    asked = parser.parse_args()
    chosen, reported = split_records(read_records())
    result: dict[str, Any] = {
        "kernel": "3D 25-point star, double precision, 640x512x512",
        "machine": MACHINE.name,
        "constants": {name: repr(getattr(find_hit_rates(), name)) for name in FUNCTIONS},
        "reload_distance": dram.RELOAD_DISTANCE,
        "chosen": report(chosen),
        "reported": report(reported),
    }
    if asked.fit:
        result["fit_to_chosen"] = fit(chosen)
        print(json.dumps(result["fit_to_chosen"], indent=1))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(result, indent=1) + "\n")
    for half in ("chosen", "reported"):
        errors = result[half]["mean_absolute_errors"]
        print(half, {name: f"{100 * one:.2f} %" for name, one in errors.items()},
              f"{result[half]['cpu_ms_median']:.1f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
