"""The figures of a machine's report: which curves belong together, and what they show."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.records.machine import Curve, MachineDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFigure:
    """A figure with its words."""

    kind: str
    """What was measured, in words and dashes: ``roofline``, ``walk-elsewhere``."""
    title: str
    caption: str
    """What it shows."""
    panels: tuple[tuple[Curve, ...], ...]
    """Curves that share axes."""
    panel_titles: tuple[str, ...] = ()
    """What each panel is of; empty for a single one."""
    is_walk: bool = False
    """Whether fitted cache levels belong into it."""


def plan_figures(machine: MachineDescription) -> list[ReportFigure]:
    """Sort a description's curves into the figures of the microbenchmarks paper."""
    by_kind: dict[str, list[Curve]] = {}
    for curve in machine.curves:
        if len(curve.x) < 2:
            continue
        by_kind.setdefault(_kind(curve), []).append(curve)
    planned = [
        _plan(kind, curves)
        for kind in (*_KNOWN, *sorted(by_kind.keys() - _KNOWN.keys()))
        if (curves := by_kind.get(kind))
    ]
    return [one for one in planned if one.panels]


def label_curve(curve: Curve, curves: Sequence[Curve]) -> str:
    """Name a curve by what tells it from its neighbours."""
    parts = [one.name.split("/") for one in curves]
    mine = curve.name.split("/")
    telling = [
        part
        for place, part in enumerate(mine)
        if len({one[place] if place < len(one) else "" for one in parts}) > 1
    ]
    text = " ".join(telling) or mine[-1]
    return re.sub(r"\bilp(\d+)\b", r"ILP \1", text).replace("_", " ")


def _kind(curve: Curve) -> str:
    kind, _, rest = curve.name.partition("/")
    return "walk elsewhere" if kind == "walk" and rest != "global" else kind


def _plan(kind: str, curves: Sequence[Curve]) -> ReportFigure:
    title, caption = _KNOWN.get(kind, (kind.capitalize().replace("_", " "), ""))
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        if kind == "roofline" and "/ilp" in curve.name:
            continue  # Fig. 3 shows them
        parts = curve.name.split("/")
        group = parts[1] if kind in _IN_PANELS and len(parts) > 1 else ""
        groups.setdefault(group or f"{curve.x_name}, {curve.y_name}", []).append(curve)
    has_titles = kind in _IN_PANELS
    return ReportFigure(
        kind=kind.replace(" ", "-").replace("_", "-"),
        title=title,
        caption=caption,
        panels=tuple(map(tuple, groups.values())),
        panel_titles=tuple(groups) if has_titles else (),
        is_walk=kind == "walk",
    )


_IN_PANELS = frozenset({"latency", "walk elsewhere"})

_KNOWN = {
    "roofline": (
        "Occupancy roofline",
        "Rate over the work-items that are active on each compute unit, by kind of instruction, "
        "with one chain of dependent instructions (the paper's Fig. 2).",
    ),
    "latency": (
        "Time per instruction",
        "Time per instruction and warp over the concurrency, for 1, 2 and 4 independent "
        "instructions in the kernel: completion latency at the left, issue latency at the right "
        "(Fig. 3).",
    ),
    "divergence": (
        "Divergence",
        "Rate of a kernel with four branches over the number of consecutive work-items that take "
        "the same one (Fig. 5).",
    ),
    "bandwidth": (
        "Bandwidth of global memory",
        "Loads over the number of loads in a work-item, in loops whose length the compiler knows, "
        "does not know, or has unrolled (Fig. 6); bandwidth by element size is in the table.",
    ),
    "walk": (
        "Random walk through global memory",
        "Latency of a dependent load over the size of the array (Fig. 7); dashed: the levels that "
        "were found, each up to its size.",
    ),
    "walk elsewhere": (
        "Random walk through the other memories",
        "Latency of a dependent load over the size of the array (Fig. 7).",
    ),
    "working_sets": (
        "Bandwidth by working set",
        "Bandwidth of all compute units together over the data that they read again and again.",
    ),
    "saturation": (
        "Saturation",
        "Bandwidth of global memory over the work-items that are active on each compute unit.",
    ),
    "barrier": ("Barriers", "Cost of a barrier by the size of the work-group."),
    "dispatch": ("Dispatch", "Time of launches of empty work-groups over their number."),
}  # fmt: skip
