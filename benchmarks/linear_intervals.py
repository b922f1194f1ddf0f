"""Do intervals hold where no learned model is at hand: the linear tier's own, on stored rows.

Run ``python benchmarks/linear_intervals.py --data FILE...``: the first samples of each row of
today's sampler make an estimate as on a device that has no model; its 90 % interval is compared
with the time that was measured. Rows shorter than 0.1 s or of fewer than 256 work-groups are left
out, and disturbed ones. Writes ``results/linear_intervals/<device>.json`` and, from these files, a
table. Besides what intervals hold, it tells the least addition to the samples' spread with which
they would have held 90 %: `kernelcast.models.linear.BEYOND_SPREAD` is the largest of the devices
that it was set on; the other devices judge it.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from machine import describe_machine

from kernelcast.models.linear import BEYOND_SPREAD, LinearFit, fit_linear, make_interval
from kernelcast.records.observation import Observation, ObservationFlag
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training_data.parquet.reader import read_parquet

FOLDER = Path(__file__).resolve().parent / "results" / "linear_intervals"
COVERAGE = 0.9
SHORTEST_S = 0.1
LEAST_WORK_GROUPS = 256
# Those whose rows BEYOND_SPREAD was chosen by.
SET_ON = ("intel-amd-epyc-1512", "pocl-haswell-amd-epyc-9d07", "rusticl-llvmpipe-amd-epyc-2965")
_STEPS = np.arange(0.0, 0.5, 0.005)
Judged = Sequence[tuple[LinearFit, float]]


def main() -> None:
    """Judge the rows of files, or only write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", type=Path, default=[], help="Parquet files")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[Observation]] = {}
    for path in options.data:
        for one in read_parquet(path):
            if _counts(one):
                rows.setdefault(one.launch.device.id, []).append(one)
    for device, found in rows.items():
        path = FOLDER / f"{device}.json"
        path.write_text(json.dumps(judge(device, found), indent=1) + "\n", encoding="utf-8")
    write_table()


def _counts(one: Observation) -> bool:
    ndrange = one.launch.ndrange
    return (
        one.sampler >= SAMPLER
        and bool(one.samples)
        and ObservationFlag.CONTAMINATED not in one.flags
        and one.seconds >= SHORTEST_S
        and ndrange is not None
        and ndrange.work_group_count >= LEAST_WORK_GROUPS
    )


def judge(device: str, rows: Sequence[Observation]) -> dict[str, object]:
    """Compare intervals with measured times; the same over steady and unsteady rows."""
    judged = [(fit_linear(one.sample_run()), one.seconds) for one in rows]
    noise = np.array([one.runs.noise or 0.0 for one in rows])
    steady = [pair for pair, differs in zip(judged, noise, strict=True) if differs < 0.02]
    widths = [_interval(fit, BEYOND_SPREAD) for fit, _ in judged]
    return {
        "device": device,
        "machine": describe_machine(),
        "rows": len(rows),
        "kernels": len({(one.launch.kernel.application, one.launch.kernel.name) for one in rows}),
        "was_set_on": device in SET_ON,
        "beyond": BEYOND_SPREAD,
        "held": _held(judged, BEYOND_SPREAD),
        "half_width": float(np.median([high / middle - 1 for _, middle, high in widths])),
        "median_noise": float(np.median(noise)),
        "least_beyond": _find_least(judged),
        "steady_rows": len(steady),
        "least_beyond_of_steady": _find_least(steady),
    }


def _interval(fit: LinearFit, beyond: float) -> tuple[float, float, float]:
    found = make_interval(fit, coverage=COVERAGE, beyond=beyond)
    return found.low, found.seconds, found.high


def _held(judged: Judged, beyond: float) -> float:
    inside = []
    for fit, measured_s in judged:
        low, _, high = _interval(fit, beyond)
        inside.append(low <= measured_s <= high)
    return float(np.mean(inside))


def _find_least(judged: Judged) -> float | None:
    """Give the least addition with which intervals hold what they say."""
    if not judged:
        return None
    return next((float(one) for one in _STEPS if _held(judged, one) >= COVERAGE), None)


def write_table() -> None:
    """Write the table of all devices' files."""
    lines = [
        "# Intervals without a learned model",
        "",
        f"What 90 % intervals of the linear tier hold of stored rows, at {BEYOND_SPREAD:.3g} beside"
        " the samples' spread;",
        "the least that would have done, of all rows and of those with whole runs within 2 %.",
        "",
        "| device | rows | kernels | held | half width (median) | noise (median) | least | least, "
        "steady rows | set on it |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    lines += [_show(json.loads(path.read_text(encoding="utf-8"))) for path in _list_results()]
    text = "\n".join(lines) + "\n"
    (FOLDER / "summary.md").write_text(text, encoding="utf-8")
    print(text)


def _list_results() -> Iterable[Path]:
    return sorted(FOLDER.glob("*.json"))


def _show(one: dict[str, float | str | bool | None]) -> str:
    steady = one["least_beyond_of_steady"]
    told = "-" if steady is None else f"{steady:.3f} of {one['steady_rows']}"
    return (
        f"| {one['device']} | {one['rows']} | {one['kernels']} | {one['held']:.1%} | "
        f"{one['half_width']:.0%} | {one['median_noise']:.1%} | {one['least_beyond']:.3f} | "
        f"{told} | {'yes' if one['was_set_on'] else 'no'} |"
    )


if __name__ == "__main__":
    main()
