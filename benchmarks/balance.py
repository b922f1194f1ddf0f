"""Compares balanced launches with the best static split and with the best single device.

``python -m benchmarks balance PAIR [--kernels N] [--repeats R] [--pattern GLOB] [--resume]
[--memory GIB]`` runs kernels of the corpus, at sizes at which they last at least 0.2 s
on the better device of a pair. PAIR is

``intel-pocl``      Intel's CPU runtime and PoCL, one core each;
``intel-unequal``   Intel's CPU runtime twice, one core each, the second without AVX;
``intel-rusticl``   Intel's CPU runtime and rusticl's llvmpipe, one core each.

For each kernel all static splits in steps of 5 % are run once, but for those that cannot be good;
then the best three of them, the better single device and the balanced launch take turns, and
medians are compared. The best split of the search runs twice in each turn: its second runs over
the best static split are the noise floor, what a balancer that knows the best split and costs
nothing would get here. Static splits, single devices and balanced launches run by the same
machinery from host arrays to host arrays; the balanced launch's time holds sampling, correction
and merging as well. With ``--resume`` kernels that are in the results already are kept. Results go
to ``results/balance/DEVICE/PAIR.json``, by the first device's id, and of all of them ``summary.md``
and a picture for each machine are made; without PAIR only these.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import harness
import numpy as np
import pandas as pd
from harness import make_table, read_json, write_result, write_text
from matplotlib.figure import Figure

from kernelcast.balancing.balancer import Arrays, Balancer, choose_places, fill_buffers
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.balance import BalanceReport
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import CorpusKernel, find_kernels

PAIRS: dict[str, tuple[tuple[str, tuple[int, ...], dict[str, str]], ...]] = {
    "intel-pocl": (("intel", (0,), {}), ("pocl", (1,), {})),
    "intel-unequal": (
        ("intel", (0,), {}),
        ("intel", (1,), {"CL_CONFIG_CPU_TARGET_ARCH": "corei7"}),
    ),
    "intel-rusticl": (("intel", (0,), {}), ("rusticl", (1,), {})),
}
SHORTEST_S = 0.2
STEPS = [round(0.05 * step, 2) for step in range(21)]
RESULTS = harness.RESULTS / "balance"
TITLES = {
    "intel-pocl": "Intel's runtime and PoCL",
    "intel-unequal": "Intel's runtime twice, once without AVX",
    "intel-rusticl": "Intel's runtime and llvmpipe",
}
RATIOS = ("to_static", "again_to_static", "to_static_work", "to_single")
_WORST = 3
_CANDIDATES = 3
_ATTEMPTS = 3
_HOPELESS = 1.5
# What takes turns: a split, by the share of the first device; the balanced launch; the best split
# of the search once more.
Kind: TypeAlias = float | str
BALANCED = "balanced"
AGAIN = "again"


@dataclass(slots=True, kw_only=True)
class Bench:
    """A problem on a pair of devices that are open, and its arguments."""

    balancer: Balancer
    problem: Problem
    given: Arrays

    def run(self, share: float | None) -> tuple[BalanceReport, Arrays]:
        """Run copies of the arguments, with a fixed share of the first device or balanced."""
        arrays = {index: one.copy() for index, one in self.given.items()}
        settings = BalanceSettings(fixed_shares=() if share is None else (share, 1 - share))
        report = self.balancer.run(self.problem, arrays, settings=settings)
        failures = [one.failure for one in report.shares if one.failure]
        if failures:
            raise KernelcastError("; ".join(failures))
        return report, arrays


def main() -> int:
    """Measure what the command line names; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pair", choices=PAIRS, nargs="?", help="draws tables alone without one")
    parser.add_argument("--kernels", type=int, default=24, help="stop after so many")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pattern", default="*", help="names of kernels")
    parser.add_argument("--limit", type=float, default=1.5, help="longest kernel, in seconds")
    parser.add_argument("--memory", type=float, default=4.0, help="largest kernel, in GiB")
    parser.add_argument("--resume", action="store_true", help="keep what was measured here before")
    options = parser.parse_args()
    if options.pair is None:
        write_summary()
        return 0
    wanted = [DevicePlace(device_id=d, cores=c, environment=e) for d, c, e in PAIRS[options.pair]]
    places = choose_places(wanted)
    rows, skipped = _read(options, places) if options.resume else ([], {})
    known = {row["kernel"] for row in rows} | set(skipped)
    with tempfile.TemporaryDirectory(prefix="kernelcast-") as folder:
        for kernel in choose_kernels(options.pattern):
            if len(rows) >= options.kernels:
                break
            if kernel.name in known:
                continue
            try:
                row = measure_kernel(kernel, places, Path(folder), options)
            except KernelcastError as error:
                skipped[kernel.name] = str(error).splitlines()[0]
                continue
            if isinstance(row, str):
                skipped[kernel.name] = row
                continue
            rows.append(row)
            print(_describe(row), flush=True)
            _write(options, places, rows, skipped)
    write_summary()
    return 0 if rows else 1


def _read(
    options: argparse.Namespace, places: Sequence[DevicePlace]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Read what was measured before on these devices of this machine."""
    path = RESULTS / places[0].device_id / f"{options.pair}.json"
    if not path.exists():
        return [], {}
    result = read_json(path)
    if result["devices"] != _describe_places(places) or result["repeats"] != options.repeats:
        return [], {}
    rows = [row for row in result["kernels"] if "again_to_static" in row]
    return rows, result["skipped"]


def _describe_places(places: Sequence[DevicePlace]) -> list[dict[str, Any]]:
    return [
        {"id": one.device_id, "cores": list(one.cores), "environment": dict(one.environment)}
        for one in places
    ]


def _write(
    options: argparse.Namespace,
    places: Sequence[DevicePlace],
    rows: Sequence[dict[str, Any]],
    skipped: dict[str, str],
) -> None:
    """Write what is measured so far, so that an end before the last kernel loses nothing."""
    write_result(RESULTS / places[0].device_id / f"{options.pair}.json", {
        "pair": options.pair,
        "devices": _describe_places(places),
        "repeats": options.repeats,
        "summary": summarise(rows),
        "kernels": rows,
        "skipped": skipped,
    })  # fmt: skip


def choose_kernels(pattern: str) -> Iterator[CorpusKernel]:
    """Give kernels, one of each application before the second of any."""
    by_application: dict[str, list[CorpusKernel]] = {}
    for kernel in find_kernels(pattern):
        by_application.setdefault(kernel.name.partition("/")[0], []).append(kernel)
    for place in range(max((len(one) for one in by_application.values()), default=0)):
        for kernels in by_application.values():
            if place < len(kernels):
                yield kernels[place]


def measure_kernel(
    kernel: CorpusKernel, places: Sequence[DevicePlace], folder: Path, options: argparse.Namespace
) -> dict[str, Any] | str:
    """Measure one kernel; a sentence says why where it is left out."""
    parameters: dict[str, int] = {}
    for _ in range(_ATTEMPTS):
        found = measure_size(kernel, parameters, places, folder, options)
        if isinstance(found, dict):
            return found
        size, best_s = found
        # Towards twice the shortest time that counts.
        wished = size * (2 * SHORTEST_S / best_s) ** (1 / kernel.size.exponent)
        fitted = kernel.size.fit(int(wished))
        if fitted == size:
            break
        parameters = {kernel.size.parameter: fitted}
    return f"{best_s:.3f} s on the better device at size {size}"


def measure_size(
    kernel: CorpusKernel,
    parameters: dict[str, int],
    places: Sequence[DevicePlace],
    folder: Path,
    options: argparse.Namespace,
) -> dict[str, Any] | tuple[int, float]:
    """Measure a kernel at a size; the size and its time where it is too short or too long."""
    prepared = prepare_launch(
        kernel, parameters, local_size=kernel.local_sizes[0], cache_folder=folder
    )
    problem = prepared.problem
    taken = sum(one.bytes for one in problem.arguments if isinstance(one, BufferArgument)) / 2**30
    if taken > options.memory:
        msg = f"its buffers take {taken:.1f} GiB: to fill them takes longer than all else"
        raise InputError(msg)
    given = fill_buffers(problem, seed=0)
    with Balancer(places) as balancer:
        bench = Bench(balancer=balancer, problem=problem, given=given)
        singles = {share: [bench.run(share) for _ in range(2)][-1] for share in (1.0, 0.0)}
        best_s = min(report.real_s for report, _ in singles.values())
        if not SHORTEST_S <= best_s <= options.limit:
            return prepared.parameters[kernel.size.parameter], best_s
        balanced = [bench.run(None) for _ in range(2)][-1]
        equality = compare(balanced[1], singles[1.0][1], singles[0.0][1])
        repeated = compare(bench.run(1.0)[1], singles[1.0][1], singles[1.0][1])
        search = {share: bench.run(share)[0].total_s for share in list_splits(singles)}
        candidates = sorted(search, key=search.__getitem__)[:_CANDIDATES]
        single = min(singles, key=lambda share: singles[share][0].total_s)
        kinds: dict[Kind, float | None] = {share: share for share in (*candidates, single)}
        kinds |= {BALANCED: None, AGAIN: candidates[0]}
        times = take_turns(bench, kinds, options.repeats)
    row = compose_row(kernel, problem, times, (candidates, single))
    row |= {"search": {str(k): v for k, v in search.items()}, "equality": equality,
            "is_deterministic": repeated == "identical"}  # fmt: skip
    row["merges"] = {name: str(rule) for name, rule in balanced[0].merges.items()}
    return row


def list_splits(singles: dict[float, tuple[BalanceReport, Arrays]]) -> list[float]:
    """List the static splits worth running.

    Left out are those in which one device alone would need so long for its part that they cannot
    be better than the better device alone.
    """
    first_s, second_s = (singles[share][0].real_s for share in (1.0, 0.0))
    limit_s = _HOPELESS * min(report.total_s for report, _ in singles.values())
    return [one for one in STEPS if max(one * first_s, (1 - one) * second_s) <= limit_s]


def take_turns(
    bench: Bench, kinds: Mapping[Kind, float | None], repeats: int
) -> dict[Kind, list[BalanceReport]]:
    """Run every kind of launch in turn, so that a slow minute hits them all."""
    found: dict[Kind, list[BalanceReport]] = {kind: [] for kind in kinds}
    for _ in range(repeats):
        for kind, share in kinds.items():
            found[kind].append(bench.run(share)[0])
    return found


def compose_row(
    kernel: CorpusKernel,
    problem: Problem,
    times: Mapping[Kind, list[BalanceReport]],
    shares: tuple[Sequence[float], float],
) -> dict[str, Any]:
    """Give what a table shows of a kernel: medians of everything, and of the devices' part."""
    totals = {kind: statistics.median(one.total_s for one in runs) for kind, runs in times.items()}
    works = {kind: statistics.median(one.real_s for one in runs) for kind, runs in times.items()}
    candidates, single = shares
    best = min(candidates, key=totals.__getitem__)
    runs = times[BALANCED]
    return {
        "kernel": kernel.name,
        "global_size": list(problem.ndrange.global_size),
        "work_groups": problem.ndrange.work_group_count,
        "buffer_bytes": problem.buffer_bytes,
        "balanced_s": totals[BALANCED],
        "balanced_runs_s": [one.total_s for one in runs],
        "prepare_s": statistics.median(one.prepare_s for one in runs),
        "work_s": works[BALANCED],
        "estimated_work_s": _median([one.estimated_s for one in runs]),
        "sampling_s": statistics.median(_sampling_s(one) for one in runs),
        "merge_s": statistics.median(one.merge_s for one in runs),
        "share": statistics.median(one.shares[0].share for one in runs),
        "estimated_share": statistics.median(one.shares[0].estimated_share for one in runs),
        "best_static_share": best,
        "best_static_s": totals[best],
        "best_static_work_s": works[best],
        "best_single": int(single == 0.0),
        "best_single_s": totals[single],
        "best_single_work_s": works[single],
        "to_static": totals[BALANCED] / totals[best],
        "again_to_static": totals[AGAIN] / totals[best],
        "to_static_work": works[BALANCED] / works[best],
        "to_single": totals[BALANCED] / totals[single],
    }


def _sampling_s(report: BalanceReport) -> float:
    return max((bar.end_s - bar.start_s for bar in report.bars if bar.activity == "sample"),
               default=0.0)  # fmt: skip


def _median(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None


def compare(found: Arrays, one: Arrays, other: Arrays) -> str:
    """Say how results compare with those of the single devices, bit by bit."""
    verdicts = []
    for index, array in found.items():
        bits, first, second = (
            each.reshape(-1).view(np.uint8).reshape(-1, array.dtype.itemsize)
            for each in (array, one[index], other[index])
        )
        equals_first = (bits == first).all(axis=1)
        equals_second = (bits == second).all(axis=1)
        if equals_first.all() or equals_second.all():
            verdicts.append("identical")
        elif (equals_first | equals_second).all():
            verdicts.append("each element that of a device")
        else:
            verdicts.append("different")
    order = ("different", "each element that of a device", "identical")
    return next((one for one in order if one in verdicts), "identical")


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, object]:
    """Give median and 90th percentile of the ratios."""
    if not rows:
        return {"kernels": 0}
    found: dict[str, object] = {"kernels": len(rows)}
    table = pd.DataFrame(rows)
    for name in RATIOS:
        values = table[name]
        found[name] = {
            "median": values.median(), "p90": values.quantile(0.9), "worst": values.max()
        }  # fmt: skip
    for verdict, count in table["equality"].value_counts().items():
        found[str(verdict)] = int(count)
    return found


def write_summary() -> None:
    """Write the table of all machines and pairs, and draw a picture for each machine."""
    machines = {
        folder.name: {
            pair: pd.DataFrame(read_json(path)["kernels"])
            for pair in PAIRS
            if (path := folder / f"{pair}.json").exists()
        }
        for folder in sorted(RESULTS.iterdir())
        if folder.is_dir()
    }
    pairs = [(device, *one) for device, known in machines.items() for one in known.items()]
    write_text(
        RESULTS / "summary.md",
        "# Balanced launches beside the best static split and the better device", "",
        "Each device on one core. Times hold everything: sampling, correction, merging.",
        "Ratios are of medians of launches that took turns; `again` is the best static split,",
        "run once more in each turn, over its first: the noise floor, which a balancer",
        "that knows the best split would get. Median, 90th percentile and worst over kernels.", "",
        *make_table(
            ["machine of", "pair", "kernels", "to the best static split", "again",
             "balanced to again", "to the better device", "bit for bit a device's result"],
            (
                (device, TITLES[pair], len(rows), _spread(rows["to_static"]),
                 _spread(rows["again_to_static"]),
                 _spread(rows["to_static"] / rows["again_to_static"]), _spread(rows["to_single"]),
                 f"{(rows['equality'] != 'different').sum()} of {len(rows)}")
                for device, pair, rows in pairs
            ),
        ), "",
        "Furthest from the best static split:", "",
        *(f"- {device}, {TITLES[pair]}: {_list_worst(rows)}." for device, pair, rows in pairs),
    )  # fmt: skip
    for device, known in machines.items():
        draw(RESULTS / device / "ratios.png", known)


def _spread(values: "pd.Series[float]") -> str:
    return f"{values.median():.2f}, {values.quantile(0.9):.2f}, {values.max():.2f}"


def _list_worst(rows: pd.DataFrame) -> str:
    return "; ".join(
        f"{row['kernel']} {row['to_static']:.2f} (again {row['again_to_static']:.2f}), "
        f"{row['balanced_s']:.2f} s, {row['share']:.0%} on the first device, best "
        f"{row['best_static_share']:.0%}"
        for row in rows.nlargest(_WORST, "to_static").to_dict("records")
    )


def draw(path: Path, pairs: Mapping[str, pd.DataFrame]) -> None:
    """Draw the ratios of each pair's kernels, from the best to the worst."""
    figure = Figure(figsize=(4.4 * max(1, len(pairs)), 3.6), layout="constrained")
    axes = figure.subplots(1, max(1, len(pairs)), sharey=True, squeeze=False)[0]
    for axis, (pair, rows) in zip(axes, pairs.items(), strict=False):
        lines = pd.DataFrame({
            "balanced": rows["to_static"],
            "the best split again (noise)": rows["again_to_static"],
            "the better device alone": rows["to_static"] / rows["to_single"],
        })  # fmt: skip
        for (label, values), style in zip(lines.items(), ("o-", "x--", ":"), strict=True):
            axis.plot(range(1, len(values) + 1), sorted(values), style, label=label)
        axis.axhline(1.0, color="grey", linewidth=0.8)
        axis.set(title=TITLES[pair], xlabel="kernels, each line from best to worst", yscale="log")
        axis.set_yticks([0.9, 1.0, 1.1, 1.2, 1.5, 2.0], ["0.9", "1", "1.1", "1.2", "1.5", "2"])
        axis.minorticks_off()
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("time over that of the best static split")
    axes[0].legend()
    figure.savefig(path, dpi=120)


def _describe(row: dict[str, Any]) -> str:
    return (
        f"{row['kernel']:38.38} balanced {row['balanced_s']:6.3f} s (prepare "
        f"{row['prepare_s']:5.3f}, work {row['work_s']:5.3f}, merge {row['merge_s']:5.3f}) "
        f"static {row['best_static_s']:6.3f} s at {row['best_static_share']:4.0%} single "
        f"{row['best_single_s']:6.3f} s | {row['to_static']:5.3f} (again "
        f"{row['again_to_static']:5.3f}) {row['to_single']:5.3f} "
        f"share {row['share']:4.0%} {row['equality']}"
    )


if __name__ == "__main__":
    sys.exit(main())
