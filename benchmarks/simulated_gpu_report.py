"""Tables and pictures of `simulated_gpu.py`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from simulated_gpu_cases import Case

SHOWN = ("linear", "and volumes", "and borders, uneven work", "and SVR")
OTHERS = ("work without volumes", "SVR without volumes")
TIMELINES = ("small/vecadd", "small/stencil25", "transpose/transpose_naive", "gemm/naive")


def write_summary(path: Path, result: Mapping[str, Any]) -> None:
    """Write all tables."""
    lines = [
        "# The sampling paper on a simulated GPU",
        "",
        f"{result['device']}; {result['simulator']}. Errors are predicted over simulated less one,"
        " means and medians of",
        "their absolute values. Whole launches are 12 to 24 P_sat, so samples are a large share of"
        " them; what a sample",
        "costs is given in P_sat, the work-groups that the device holds at once. Forms and features"
        " were fixed on",
        "physical grounds, but by someone who had seen these launches; settings and gate of the SVR"
        " are chosen among",
        "the kernels that are not left out.",
        "",
        *_list_steps(result["steps"]),
        *_list_states(result["states"]),
        *_list_windows(result["windows"]),
        *_list_volumes(result["volumes"]),
        *_list_kernels(result["steps"]),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _list_steps(steps: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Step by step, all kernels", "",
        "*Volumes*: beyond the sample no faster than DRAM takes loads and write-backs, once L2 is"
        " full. *Borders, uneven",
        "work*: where work-groups do nothing or differ, by the source or by software counters, 2"
        " and 4 P_sat are launched",
        "behind a warm-up at the place whose work is nearest to the mean. *SVR*: each kernel by a"
        " model of the others.", "",
        "| sample | step | kernels | mean | median | worst | cost, P_sat |",
        "|---|---|---:|---:|---:|---|---:|",
    ]  # fmt: skip
    for protocol, found in steps.items():
        for name in (*SHOWN, *OTHERS):
            one = found["summary"][name]
            cost = found["cost_p_sat"]["first" if name in SHOWN[:2] else "chosen"]
            lines.append(
                f"| {protocol} | {name} | {one['kernels']} | {_show(one['mean'])} |"
                f" {_show(one['median'])} | {_show(one['worst'])} {one['worst_kernel']} |"
                f" {cost:.1f} |"
            )
    return [*lines, ""]


def _list_states(states: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        "## The two-point formula by what the caches hold", "",
        "| P_sat | state | kernels | mean | median | worst |", "|---|---|---:|---:|---:|---|",
    ]  # fmt: skip
    lines += [
        f"| {one['points'][0]} and {one['points'][1]} | {one['state']} | {one['kernels']} |"
        f" {_show(one['mean'])} | {_show(one['median'])} |"
        f" {_show(one['worst'])} {one['worst_kernel']} |"
        for one in sorted(states, key=lambda one: (one["state"], one["points"]))
    ]
    return [*lines, ""]


def _list_windows(windows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        "## Warmed windows at several places, 2 and 4 P_sat", "",
        "| kernel | places | line | with work | and volumes |", "|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    known = [one for one in windows if "linear" in one]
    for one in known:
        cells = " | ".join(_show(one[name]) for name in ("linear", "work", "volumes"))
        lines.append(f"| {one['kernel']} | {one['places']} | {cells} |")
    small = [one for one in known if one["kernel"].startswith("small/") and one["has_clean_whole"]]
    for title, chosen in (("mean", known), ("mean of small kernels from empty caches", small)):
        cells = " | ".join(
            _show(float(np.mean([abs(one[name]) for one in chosen])))
            for name in ("linear", "work", "volumes")
        )
        lines.append(f"| {title} ({len(chosen)}) | | {cells} |")
    return [*lines, ""]


def _list_volumes(volumes: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        "## What is written back", "",
        "Sectors that the whole launch writes to DRAM, by the model of a cache that fills and by"
        " the simulator's counter.", "",
        "| kernel | stores from | P_sat until L2 is full | stored | written back | simulated |",
        "|---|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    for one in volumes:
        origin = "source" if one["is_from_source"] else "counters"
        lines.append(
            f"| {one['kernel']} | {origin} | {one['clean_p_sat']:.1f} |"
            f" {one['stored_sectors']:,.0f} | {one['written_sectors']:,.0f} |"
            f" {one['simulated_sectors']:,} |"
        )
    return [*lines, ""]


def _list_kernels(steps: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for protocol, found in steps.items():
        lines += [
            f"## Every kernel: {protocol}", "",
            "| kernel | " + " | ".join(SHOWN) + " |", "|---|" + "---:|" * len(SHOWN),
        ]  # fmt: skip
        lines += [
            f"| {kernel} | " + " | ".join(_show(found["errors"][s][kernel]) for s in SHOWN) + " |"
            for kernel in found["errors"]["linear"]
        ]
        lines.append("")
    return lines[:-1]


def _show(error: float) -> str:
    return f"{100 * error:.1f} %"


def draw(folder: Path, result: Mapping[str, Any], cases: Sequence[Case]) -> None:
    """Draw errors step by step, and timelines of some launches."""
    _draw_errors(folder / "errors.png", result)
    _draw_timelines(folder / "timelines.png", cases)


def _draw_errors(path: Path, result: Mapping[str, Any]) -> None:
    found = result["steps"]["2 and 3 P_sat"]["errors"]
    names = sorted(found["linear"], key=lambda name: found["linear"][name])
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    axis = figure.subplots()
    places = np.arange(len(names))
    for step, marker in zip(SHOWN, "ovsD", strict=True):
        axis.plot(places, [100 * found[step][name] for name in names], marker, label=step,
                  markersize=4 if step != SHOWN[-1] else 5)  # fmt: skip
    axis.axhspan(-5, 5, color="grey", alpha=0.2)
    axis.axhline(0, color="grey", linewidth=0.8)
    axis.set_xticks(places, names, rotation=90, fontsize=7)
    axis.set_ylabel("predicted over simulated, less 1, %")
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _draw_timelines(path: Path, cases: Sequence[Case]) -> None:
    figure = Figure(figsize=(10, 6), layout="constrained")
    shown = {case.kernel.name: case for case in cases}
    for axis, name in zip(figure.subplots(2, 2).flat, TIMELINES, strict=True):
        case = shown[name]
        for multiple in (4, 3, 2, 1):
            run = case.first(multiple)
            counts, cycles = zip((0, 0), *run.ends, strict=True)
            axis.step([one / case.unit for one in counts], cycles, where="pre",
                      label=f"{multiple} P_sat", linewidth=1)  # fmt: skip
            axis.plot(multiple, run.cycles, "k.", markersize=4)
        axis.set(title=name, xlabel="work-groups that have ended, P_sat", ylabel="cycles")
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=110, metadata={"Software": None})
