"""Renders the results of ``evidence.py``: tables of each device, and one picture."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from harness import read_json, replace_block, write_text

mpl.use("Agg")
from matplotlib import pyplot as plt

from kernelcast.reports.drawing import COLOURS, INK, MARKERS, STYLE, WIDTH_INCHES
from kernelcast.sampling.plan import SAMPLER

Result = Mapping[str, Any]
README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- evidence: begin -->", "<!-- evidence: end -->"
MAIN = "two moments"
LINES = {
    "the sampler's set 0 (what users get)": ("raw", "the sampler's set 0", ""),
    "the same sampler, set 1 (after whole runs)": ("raw", "the sampler's set 1", ""),
    "pairs of 2 and 3 units, two moments": ("raw", "pairs of 2 and 3 units, two moments", ""),
    "pairs of 4 and 5 units, two moments": ("raw", "pairs of 4 and 5 units, two moments", ""),
    "all sets but the first, 3 units and more": (
        "raw", "all sets but the first, 3 units and more", "",
    ),
    "**fused**: set 0": ("lines", "set 0", "set 0"),
    "**fused**: pairs of 2 and 3 units, two moments": (
        "lines", "pairs of 2 and 3", "pairs of 2 and 3",
    ),
    "**fused**: two moments": ("lines", MAIN, MAIN),
    "**fused**: two moments, corrected": ("lines", f"{MAIN}, corrected", MAIN),
    "**fused**: two moments, three other sizes estimated": (
        "lines", f"{MAIN}, three estimated sizes", MAIN,
    ),
    "**fused**: set 0, three other sizes": ("lines", "set 0, three other sizes", "set 0"),
    "**fused**: two moments, three other sizes": ("lines", f"{MAIN}, three other sizes", MAIN),
    "**fused**: two moments, three other sizes, corrected": (
        "lines", f"{MAIN}, three other sizes, corrected", MAIN,
    ),
    "**fused**: two moments, all other sizes": ("lines", f"{MAIN}, all other sizes", MAIN),
    "**no sampling**: three other sizes": ("lines", "no sampling, three other sizes", "0"),
    "**no sampling**: all other sizes": ("lines", "no sampling, all other sizes", "0"),
    "**no sampling**: three sizes that were only estimated": (
        "lines", "no sampling, three estimated sizes", "0",
    ),
    "**fused**: two moments, one whole run": ("lines", f"{MAIN}, one whole run", "100"),
}  # fmt: skip
PEERS = (
    "evidence", "median, by instructions", "median, by work-items", "StarPU: a n^b",
    "StarPU: a n^b + c", "StarPU: multiple linear",
)  # fmt: skip
FACTORS = ("1e-06", "0.001", "0.1", "0.5", "2", "10", "1000", "1e+06")
DIVIDED = ("set 0", MAIN, f"{MAIN}, corrected", f"{MAIN}, three other sizes",
           "no sampling, three other sizes", "no sampling, all other sizes")  # fmt: skip
DRAWN = {
    "set 0, raw": ("raw", "the sampler's set 0"),
    "set 0, fused": ("lines", "set 0"),
    "two moments": ("lines", MAIN),
    "two moments,\nthree other sizes": ("lines", f"{MAIN}, three other sizes"),
    "no sampling,\nthree other sizes": ("lines", "no sampling, three other sizes"),
    "one whole run\nfor the others": ("", "whole_runs"),
}


def write_report(folder: Path) -> None:
    """Write ``summary.md`` and ``errors.svg`` from the result files of a folder."""
    files = [read_json(path) for path in sorted(folder.glob("*.json"))]
    lines = ["# Pieces of evidence", "", *_introduce()]
    for one in files:
        lines += _describe(one)
    write_text(folder / "summary.md", *lines)
    newest = [one for one in files if one.get("sampler", 0) >= SAMPLER]
    if newest:
        _write_overview(newest)
    if files:
        _draw(files, folder / "errors.svg")


def _write_overview(files: Sequence[Result]) -> None:
    """Put what the newest sampler's rows say between the README's markers."""
    lines = [
        "| device | rows, kernels | one whole run for the others | first answer "
        "| 90 % intervals hold | half width | cost | other sizes observed too "
        "| other sizes, nothing run |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in files:
        told, found = one["lines"], one["lines"][MAIN]
        cells = [
            f"`{one['device']}`", f"{one['rows']}, {one['kernels']}", _pair(one["whole_runs"]),
            f"**{_pair(found)}**", f"{found['held']:.1%}", f"{found['half_width']:.1%}",
            f"{one['costs'][MAIN]:.1%}", _pair(told.get(f"{MAIN}, all other sizes")),
            _pair(told.get("no sampling, all other sizes")),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    replace_block(README, BEGIN, END, ["", *lines, ""])


def _introduce() -> list[str]:
    return [
        "Mean and median relative errors of launches whose kernels were held out (with their whole",
        "family since rows of sampler 5), with their 90 % intervals, as `benchmarks/evidence.py`",
        "says. *Two moments*, rows of sampler 6 (`55ea`, `91ef`, `2b30`): the samples that an",
        "estimate takes, before anything of the launch ran. Of sampler 3: pairs of 3 and 4",
        "units at two moments where the sampler's pilot or the source says that work is even, else",
        "its sets 0 and 1; all but set 0 were taken between whole runs, and the cost leaves the",
        "pilot out, which is given beside the table.",
        "",
        "![Errors by what is known](errors.svg)",
        "",
    ]


def _describe(one: Result) -> Iterator[str]:
    chosen = ", on whose rows settings were chosen" if one["was_chosen_on"] else ""
    yield from (
        f"## {one['device']}", "",
        f"{one['rows']} rows of {one['kernels']} kernels, {one['uneven_rows']} of uneven work"
        f"{chosen}. The pilot costs {one['pilot_cost']:.1%} in the median.", "",
        "| what is known | answers | mean | median | 90th percentile | worst | bias "
        "| intervals hold | half width | cost |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        _row("one whole run for the others", one["whole_runs"], "100 %"),
    )  # fmt: skip
    for label, (place, name, cost) in LINES.items():
        found = one[place].get(name)
        if found:
            yield _row(label, found, _show_cost(one, found, cost))
    yield ""
    yield from _describe_noise(one)
    yield from _describe_others(one)
    yield from _describe_poison(one)
    yield from _describe_peers(one)


def _show_cost(one: Result, found: Mapping[str, float], cost: str) -> str:
    if cost in {"0", "100"}:
        return f"{cost} %"
    return f"{one['costs'][cost] if cost else found['cost']:.1%}"


def _row(label: str, found: Mapping[str, float], cost: str) -> str:
    held, width = found.get("held"), found.get("half_width")
    return (
        f"| {label} | {found['answers']} | {found['mean']:.1%} | {found['median']:.1%} | "
        f"{found['p90']:.0%} | {found['worst']:.0%} | {found['bias']:+.1%} | "
        f"{'' if held is None else f'{held:.1%}'} | {'' if width is None else f'{width:.1%}'} | "
        f"{cost} |"
    )


def _pair(found: Mapping[str, float] | None) -> str:
    return "" if found is None else f"{found['mean']:.1%} / {found['median']:.1%}"


def _list_divided(one: Result) -> list[str]:
    return [name for name in DIVIDED if any(name in each for each in one["by_noise"])]


def _describe_noise(one: Result) -> Iterator[str]:
    names = ["one whole run for the others", *_list_divided(one)]
    yield from (
        "Mean / median by the noise of a row's whole runs:",
        "",
        f"| noise | rows | {' | '.join(names)} |",
        f"|---|---:{'|---:' * len(names)}|",
    )
    for each in one["by_noise"]:
        to = f"to {each['to']:.0%}" if each["to"] else "and more"
        cells = " | ".join(_pair(each.get(name)) for name in names)
        yield f"| {each['from']:.0%} {to} | {each['rows']} | {cells} |"
    yield ""


def _describe_others(one: Result) -> Iterator[str]:
    names = _list_divided(one)
    yield from ("The same by evenness, and by the age of the kernel's other sizes:", "",
                f"| rows | {' | '.join(names)} |", f"|---{'|---:' * len(names)}|")  # fmt: skip
    for division in ("by_evenness", "by_age"):
        for label, each in one[division].items():
            if each:
                yield f"| {label} | {' | '.join(_pair(each.get(name)) for name in names)} |"
    yield ""


def _describe_poison(one: Result) -> Iterator[str]:
    names = [name for name in ("samples", "samples and sizes")
             if f"poisoned, {name}, factor 2" in one["lines"]]  # fmt: skip
    yield from ("Mean / median with one observation that is wrong by a factor:", "",
                f"| beside | {' | '.join(FACTORS)} |",
                f"|---{'|---:' * len(FACTORS)}|")  # fmt: skip
    for name in names:
        cells = [one["lines"][f"poisoned, {name}, factor {factor}"] for factor in FACTORS]
        yield f"| {name} | {' | '.join(map(_pair, cells))} |"
    yield ""


def _describe_peers(one: Result) -> Iterator[str]:
    if "evidence, three sizes" not in one["lines"]:
        return
    yield from (
        "Other sizes alone, of launches that have three: mean / median / 90th percentile",
        "(launches without an answer):",
        "",
        "| | three sizes | all sizes |",
        "|---|---:|---:|",
    )
    for name in PEERS:
        cells = [one["lines"].get(f"{name}, {told} sizes") for told in ("three", "all")]
        label = "**evidence**" if name == "evidence" else name
        yield f"| {label} | {' | '.join(map(_show_peer, cells))} |"
    yield ""


def _show_peer(found: Mapping[str, float] | None) -> str:
    if found is None:
        return ""
    return f"{_pair(found)} / {found['p90']:.0%} ({found['without_answer']:.0f})"


def _draw(files: Sequence[Result], path: Path) -> None:
    """Draw means and medians of the lines that matter, one mark per device."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH_INCHES, 3.4), layout="constrained")
        for number, one in enumerate(files):
            shift = 0.12 * (number - (len(files) - 1) / 2)
            for place, (group, name) in enumerate(DRAWN.values()):
                found = one[name] if not group else one[group].get(name)
                if found:
                    colour, marker = COLOURS[number], MARKERS[number]
                    label = one["device"] if place == 0 else None
                    axes.plot(place + shift, 100 * found["mean"], marker, color=colour, label=label)
                    axes.plot(place + shift, 100 * found["median"], marker, color=colour,
                              markerfacecolor="none")  # fmt: skip
        axes.set_xticks(range(len(DRAWN)), list(DRAWN))
        axes.set_ylim(bottom=0)
        axes.set_ylabel("error in %: mean (full), median (open)")
        axes.grid(axis="y", color=INK, alpha=0.15)
        axes.legend()
        figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})
        plt.close(figure)
