"""Hong and Kim's model beside ours and beside the clock, on every GPU kernel that was timed.

``python benchmarks/mwp_cwp.py`` asks MWP-CWP (by both rules for its cases) and the volume model
about every record of `gpu_family_cases.py` that has a time, and about the whole launches of the
simulated GPU, whose cycles the models' times are compared with. MWP-CWP has no fitted constant: all
it knows comes from source and machine descriptions. The volume model's constants were fitted to one
family of the V100; families of the V100 are shown with the constants that the others choose as
well, from ``results/gpu_families/leave_one_out.json``. Writes ``results/mwp_cwp``, and the table of
docs/explanation/mwp-cwp.md.
"""

import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpu_families import LEFT_OUT, ask
from gpu_family_cases import list_cases
from gpu_family_machines import describe
from machine import describe_machine
from matplotlib.figure import Figure
from scipy.stats import kendalltau
from simulated_gpu_cases import DEVICE, make_checked_problem

from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.launches.modelling.mwp_cwp import estimate_mwp_cwp
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import CacheFacts, MachineDescription, MemoryFacts
from kernelcast.records.traits import Trait
from support.simulated_gpu import load_simulated_kernels

FOLDER = Path(__file__).parent / "results/mwp_cwp"
DOCUMENT = Path(__file__).parents[1] / "docs/explanation/mwp-cwp.md"
BEGIN = "<!-- Written by benchmarks/mwp_cwp.py from its results; do not edit. -->"
END = "<!-- end -->"
MODELS = {"mwp_cwp": "MWP-CWP", "published": "its published rule", "volumes": "volume model"}
SIMULATED = "V100 of 5 units, simulated"
UNITS = 5
FEW = 4
"""Of so many launches or fewer an order says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A timed launch, and what each model says of it, in seconds."""

    device: str
    family: str
    name: str
    measured: float
    predicted: Mapping[str, float]
    limiter: str
    """By MWP-CWP."""

    def error(self, model: str) -> float:
        """Give predicted over measured, less 1."""
        return self.predicted[model] / self.measured - 1


def ask_mwp_cwp(
    launch: ModelledLaunch, machine: MachineDescription
) -> tuple[dict[str, float], str]:
    """Give the seconds by both rules, and what limits by the one that is used."""
    found = estimate_mwp_cwp(launch, machine)
    published = found.quantities["published_rule_s"]
    return {"mwp_cwp": found.seconds, "published": published}, found.limiter


def list_measured(left_out: Counter[str]) -> Iterator[Row]:
    """Ask about measured launches; count in `left_out` why others are none."""
    for case in list_cases(left_out):
        if "seconds" not in case.measured:
            continue
        try:
            seconds, limiter = ask_mwp_cwp(case.launch, describe(case.device))
        except KernelcastError as error:
            left_out[f"{case.family}: {error}"] += 1
            continue
        yield Row(
            device=case.device, family=case.family, name=case.id,
            measured=case.measured["seconds"],
            predicted={**seconds, "volumes": ask(case).seconds}, limiter=limiter,
        )  # fmt: skip


def list_simulated(left_out: Counter[str]) -> Iterator[Row]:
    """Ask about whole launches on the simulated GPU."""
    machine = describe_simulated()
    assert machine.clock_hz is not None
    clock_hz = machine.clock_hz.value
    with tempfile.TemporaryDirectory() as folder:
        for kernel in load_simulated_kernels():
            if kernel.gpu.id != DEVICE or kernel.whole is None:
                continue
            problem = make_checked_problem(kernel, Path(folder))
            try:
                launch = model_kernel(problem).launch(problem.ndrange, registers=kernel.registers)
                seconds, limiter = ask_mwp_cwp(launch, machine)
                volumes = estimate_analytically(launch, machine).seconds
            except KernelcastError as error:
                left_out[f"{kernel.name}: {error}"] += 1
                continue
            kind = "small kernels" if kernel.name.startswith("small/") else "corpus"
            yield Row(
                device=SIMULATED, family=kind, name=kernel.name,
                measured=kernel.whole.cycles / clock_hz,
                predicted={**seconds, "volumes": volumes}, limiter=limiter,
            )  # fmt: skip


def describe_simulated() -> MachineDescription:
    """Give the V100 cut down as the simulator's was: 5 of 80 units, 2 of 32 channels, L2 alike."""
    whole = find_machine("v100")
    assert whole.compute_units is not None
    share = UNITS / whole.compute_units.value

    def cut(trait: Trait[float] | None) -> Trait[float] | None:
        return None if trait is None else replace(trait, value=trait.value * share)

    def cut_memory(one: MemoryFacts) -> MemoryFacts:
        rates = {
            width: replace(rate, value=rate.value * share)
            for width, rate in one.load_bytes_per_s.items()
        }
        return replace(one, load_bytes_per_s=rates, copy_bytes_per_s=cut(one.copy_bytes_per_s))

    def cut_cache(one: CacheFacts) -> CacheFacts:
        found = replace(one, load_bytes_per_s=cut(one.load_bytes_per_s))
        if one.name != "L2" or one.size_bytes is None:
            return found
        size = one.size_bytes
        return replace(
            found, size_bytes=replace(size, value=int(size.value * share)),
            shared_by=replace(size, value=UNITS),
        )  # fmt: skip

    return replace(
        whole,
        id="v100-5-units",
        compute_units=replace(whole.compute_units, value=UNITS),
        instructions=tuple(
            replace(one, peak_per_s=cut(one.peak_per_s)) for one in whole.instructions
        ),
        caches=tuple(map(cut_cache, whole.caches)),
        memories=tuple(map(cut_memory, whole.memories)),
        curves=(),
    )


def summarise(rows: Sequence[Row], model: str, *, scales: bool) -> dict[str, float]:
    """Give a model's errors and how well it orders.

    Parameters
    ----------
    rows : sequence of Row
        Of one family and device.
    model : str
        Of `MODELS`.
    scales : bool
        Whether to take out the mean factor first, where times mean something beside one another
        only.
    """
    factor = 1.0
    if scales:
        factor = statistics.geometric_mean(one.predicted[model] / one.measured for one in rows)
    errors = [(one.error(model) + 1) / factor - 1 for one in rows]
    found = {
        "median_absolute_error": statistics.median(map(abs, errors)),
        "mean_absolute_error": statistics.fmean(map(abs, errors)),
        "bias": statistics.fmean(errors),
        "within_a_factor_of_2": statistics.fmean(0.5 <= one + 1 <= 2 for one in errors),
        "factor": factor,
    }
    if len(rows) > FEW:
        times = ([one.predicted[model] for one in rows], [one.measured for one in rows])
        found["kendall_tau"] = float(kendalltau(*times).statistic)
    return found


def write(measured: Sequence[Row], simulated: Sequence[Row], left_out: Mapping[str, int]) -> None:
    """Write all rows, the tables and a picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    fitted = json.loads(LEFT_OUT.read_text(encoding="utf-8")) if LEFT_OUT.exists() else {}
    rows = [*measured, *simulated]
    groups: dict[tuple[str, str], list[Row]] = {}
    for one in rows:
        groups.setdefault((one.device, one.family), []).append(one)
    tables: dict[str, dict[str, Any]] = {
        f"{device}, {family}": {
            "records": len(own),
            **{name: summarise(own, name, scales=device == SIMULATED) for name in MODELS},
        }
        for (device, family), own in sorted(groups.items())
    }
    content = {
        "machine": describe_machine(), "families": tables,
        "records": [
            {"device": one.device, "family": one.family, "id": one.name, "measured_s": one.measured,
             "predicted_s": dict(one.predicted), "limiter": one.limiter}
            for one in rows
        ],
    }  # fmt: skip
    (FOLDER / "results.json").write_text(json.dumps(content) + "\n", encoding="utf-8")
    own = len({(one.device, one.family) for one in measured})
    lines = [
        "# MWP-CWP beside the volume model",
        "",
        f"{len(measured)} measured launches of {own} families and devices, {len(simulated)} "
        "simulated ones, of which each model's mean factor is taken out first. Median and mean of "
        "|predicted / measured - 1|, share within a factor of 2, Kendall tau of the order. MWP-CWP "
        "has no fitted constants; of the volume model the column *left out* has median errors with "
        "the constants that all other families choose.",
        "",
        "| device | family | launches | MWP-CWP median | mean | within 2 | tau | "
        "published rule median | volume model median | mean | within 2 | tau | left out |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    shown = ["| device | family | launches | MWP-CWP | tau | volume model | tau | left out |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for (device, family), found in sorted(groups.items()):
        table = tables[f"{device}, {family}"]
        apart = fitted.get(family, {}).get("seconds") if device == "V100" else None
        cells = [
            *_tell(table["mwp_cwp"]),
            f"{100 * table['published']['median_absolute_error']:.0f} %",
            *_tell(table["volumes"]),
            f"{100 * apart['median_absolute_error']:.1f} %" if apart else "",
        ]
        lines.append(f"| {device} | {family} | {len(found)} | {' | '.join(cells)} |")
        chosen = " | ".join(cells[place] for place in (0, 3, 5, 8, 9))
        shown.append(f"| {device} | {family} | {len(found)} | {chosen} |")
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)
    text = "\n".join([BEGIN, *shown, END]) + rest.split(END)[1]
    DOCUMENT.write_text(before + text, encoding="utf-8")
    lines += ["", *_sum_up(measured), "", "## Not asked", ""]
    lines += [f"- {times} of {reason}" for reason, times in sorted(left_out.items())]
    (FOLDER / "summary.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _draw(groups)


def _tell(found: Mapping[str, float]) -> list[str]:
    tau = found.get("kendall_tau")
    shares = ("median_absolute_error", "mean_absolute_error", "within_a_factor_of_2")
    return [*(f"{100 * found[one]:.0f} %" for one in shares), "" if tau is None else f"{tau:.2f}"]


def _sum_up(rows: Sequence[Row]) -> list[str]:
    """Tell errors by what limits a launch."""
    lines = [
        "| limited by (MWP-CWP) | launches | MWP-CWP median error | volume model median error |",
        "|---|---|---|---|",
    ]
    for limiter in sorted({one.limiter for one in rows}):
        own = [one for one in rows if one.limiter == limiter]
        medians = [
            statistics.median(abs(one.error(model)) for one in own)
            for model in ("mwp_cwp", "volumes")
        ]
        shown = " | ".join(f"{100 * one:.0f} %" for one in medians)
        lines.append(f"| {limiter} | {len(own)} | {shown} |")
    return lines


def _draw(groups: Mapping[tuple[str, str], Sequence[Row]]) -> None:
    figure = Figure(figsize=(9.0, 0.3 * len(groups) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    names = sorted(groups, reverse=True)
    for model, colour, shift in (("mwp_cwp", "#ee6677", 0.15), ("volumes", "#4477aa", -0.15)):
        for place, name in enumerate(names):
            rows = groups[name]
            factor = summarise(rows, model, scales=name[0] == SIMULATED)["factor"]
            ratios = [(one.error(model) + 1) / factor for one in rows]
            label = MODELS[model] if place == 0 else None
            axes.plot(ratios, [place + shift] * len(ratios), "|", color=colour, label=label)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), [", ".join(one) for one in names], fontsize=7)
    axes.set_xlabel("predicted over measured time; simulated ones less their mean factor")
    figure.legend(loc="outside upper right", ncols=2)
    figure.savefig(FOLDER / "times.png", dpi=110, metadata={"Software": None})


def main() -> None:
    """Ask about everything and write what is found."""
    left_out: Counter[str] = Counter()
    measured = list(list_measured(left_out))
    simulated = list(list_simulated(left_out))
    write(measured, simulated, left_out)
    print((FOLDER / "summary.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
