"""Tables and pictures of `gpu_families.py`."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

QUANTITIES = {
    "dram_load": "DRAM loads", "dram_store": "DRAM stores", "l2_load": "L2 loads",
    "l2_store": "L2 writes", "seconds": "time",
}  # fmt: skip
AMD = ("MI250X(GCD)", "MI300A")
GOALS = {"dram_load": (0.05, 0.10), "seconds": (0.15, 0.20)}
REASONS = {
    ("box2d_l1_v100", "seconds"): "all work-groups read one window through remainders; the model "
    "lets each load it from L2, while L1 keeps it: only addresses that are the same for all "
    "work-groups are known to stay",
    ("box2d_mem_v100", "seconds"): "work-groups of 1 to 4 columns: with full units the model "
    "overlaps L1 and DRAM completely",
    ("laplace7_amdlab", "dram_load"): "the same addresses loaded in another order (kernels 1 and 2 "
    "against 3) move 1.5 times as much, and the model does not know why; rows of 8 and 16 are "
    "taken for lost in L2 between two loads of one work-item",
    ("laplace7_amdlab", "seconds"): "follows from the DRAM loads",
    ("transpose_naive_v100s", "l2_store"): "the counter shows 16 sectors a warp where 32 rows are "
    "written; the source is inferred",
    ("transpose_naive_v100s", "seconds"): "26 us, of which the launch is a good part; the V100S's "
    "launch was not measured",
    ("ktt_vectoradd", "dram_store"): "what is written last stays in L2: 2 of 4 MB",
    ("ktt_vectoradd", "seconds"): "one profiled launch of 37 us, cold",
    ("ktt_coulomb3d_part", "seconds"): "loops that a pragma unrolls in part: compilers then choose "
    "array elements by comparisons, up to five times the instructions, of which the source shows "
    "none",
    ("ktt_coulomb3d_part", "l2_load"): "as above",
    ("ktt_coulomb3d", "l2_load"): "1 kB of atoms, the same for all: how long L1 keeps it beside "
    "the results",
    ("ktt_pnpoly", "l2_load"): "the same with 5 kB of vertices, which lie in constant memory",
    ("babelstream_ornl", "seconds"): "256 MB of Infinity Cache keep a part of the arrays, which is "
    "not modelled",
    ("simple_kernels_multi", "seconds"): "2080 Ti: strided accesses move 64 bytes a sector, it "
    "seems, and clocks are not stated; 7 x 7 convolutions and products of matrices wait for L1",
}


def draw(rows: Sequence[Mapping[str, Any]], device: str, path: Path) -> None:
    """Draw predicted over measured: DRAM loads and time."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2))
    units = {"dram_load": (1e-6, "MB"), "seconds": (1e3, "ms")}
    for axis, (quantity, (scale, unit)) in zip(axes, units.items(), strict=True):
        for family in sorted({row["family"] for row in rows}):
            own = [r for r in rows if r["family"] == family and quantity in r["measured"]]
            if own:
                axis.loglog(
                    [scale * r["measured"][quantity] for r in own],
                    [scale * r["predicted"][quantity] for r in own], ".", label=family,
                )  # fmt: skip
        ends = axis.get_xlim()
        axis.plot(ends, ends, color="grey", linewidth=0.8)
        axis.set_xlabel(f"measured {QUANTITIES[quantity]}, {unit}")
        axis.set_ylabel(f"predicted, {unit}")
        if axis.get_legend_handles_labels()[1]:
            axis.legend(fontsize=7)
    figure.suptitle(device)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def write_summary(  # noqa: PLR0913 - everything that was found
    path: Path,
    tables: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]],
    left_out: Mapping[str, Any],
    not_asked: Mapping[str, int],
    count: int,
    seconds: float,
) -> None:
    """Write the tables, what fails and why, and what could not be asked."""
    lines = [
        "# The GPU model against measured families",
        "",
        f"{count} records, {seconds:.1f} s of CPU time. Errors are predicted over measured less "
        "one. Fitted constants come from every second local size of one family, the 25-point star, "
        "alone; the V100's rate of starting work-groups comes from box2d_l1. The form of the model "
        "of spread loads was found on star3d13_2z, and that L1 overlaps the DRAM in full units on "
        "box2d_mem.",
        "",
    ]
    for device, families in tables.items():
        lines += [
            f"## {device}", "",
            "| family | quantity | records | median error | mean | bias | worst | Kendall tau |",
            "|---|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for family, quantities in families.items():
            for quantity, one in quantities.items():
                tau = f"{one['kendall_tau']:.2f}" if "kendall_tau" in one else ""
                figures = " | ".join(
                    f"{100 * one[name]:.1f} %"
                    for name in ("median_absolute_error", "mean_absolute_error", "bias",
                                 "worst_error")
                )  # fmt: skip
                records = int(one["records"])
                lines.append(
                    f"| {family} | {QUANTITIES[quantity]} | {records} | {figures} | {tau} |"
                )
        lines.append("")
    lines += _compare_with_goals(tables, left_out)
    lines += _list_left_out(left_out)
    lines += ["## What fails, and why", ""]
    for (family, quantity), reason in REASONS.items():
        lines.append(f"- {family}, {QUANTITIES[quantity]}: {reason}.")
    lines += ["", "## Records that were not asked about", ""]
    lines += [f"- {times} of {reason}" for reason, times in sorted(not_asked.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _compare_with_goals(
    tables: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]],
    left_out: Mapping[str, Any],
) -> list[str]:
    lines = [
        "## Medians over families", "",
        "V100 families with the constants that the others choose, see below.", "",
        "| makers | quantity | families | median of medians | goal |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for quantity, goals in GOALS.items():
        for maker, goal in zip(("NVIDIA", "AMD"), goals, strict=True):
            medians = [
                (left_out.get(family, {}).get(quantity) or quantities[quantity])[
                    "median_absolute_error"
                ]
                for device, families in tables.items()
                for family, quantities in families.items()
                if (device in AMD) == (maker == "AMD") and quantity in quantities
            ]
            lines.append(
                f"| {maker} | {QUANTITIES[quantity]} | {len(medians)} | "
                f"{100 * statistics.median(medians):.1f} % | {100 * goal:.0f} % |"
            )
    return [*lines, ""]


def _list_left_out(left_out: Mapping[str, Any]) -> list[str]:
    if not left_out:
        return []
    lines = ["## Constants of the other families", "",
             "Each V100 family with the constants that the others choose (mean, median error).", "",
             "| family left out | DRAM loads | L2 loads | time |", "|---|---|---|---|"]  # fmt: skip
    for family, found in left_out.items():
        cells = [
            f"{100 * one['mean_absolute_error']:.1f} %, {100 * one['median_absolute_error']:.1f} %"
            if (one := found.get(name))
            else ""
            for name in ("dram_load", "l2_load", "seconds")
        ]
        lines.append(f"| {family} | {' | '.join(cells)} |")
    return [*lines, ""]
