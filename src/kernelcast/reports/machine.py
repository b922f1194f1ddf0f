"""What people are told of a machine description: tables, figures, and what speaks against it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, date, datetime
from itertools import compress, zip_longest
from pathlib import Path
from statistics import median
from typing import Any, Final

from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.machine import CacheFacts, Curve, MachineDescription
from kernelcast.reports.charts import Axis, Chart, Figure, Series, make_series
from kernelcast.reports.charts import Unit as AxisUnit
from kernelcast.reports.presenter import Cell, Field, Part, Section, Table, Value, save_page

MARKS: Final = {
    TraitSource.MEASURED: "", TraitSource.REPORTED: "r", TraitSource.COMPUTED: "c",
    TraitSource.PUBLISHED: "p", TraitSource.ASSUMED: "a",
}  # fmt: skip
"""Letters behind a number that tell its source; measured ones have none."""
_DECIMAL: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SCALES: Final[Mapping[str, Sequence[tuple[float, str]]]] = {
    "_bytes_per_s": [(scale, f"{letter}B/s") for scale, letter in _DECIMAL],
    "_per_s": [(scale, f"{letter}op/s") for scale, letter in _DECIMAL],
    "_hz": [(scale, f"{letter}Hz") for scale, letter in _DECIMAL],
    "_bytes": ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
    "_s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps")),
}
"""Scales and units by the end of a number's key."""
_DEVICE_NUMBERS: Final = {
    "compute_units": "compute units", "warp_width": "warp width", "clock_hz": "clock",
    "max_work_group_size": "largest work-group",
    "max_work_groups_per_unit": "work-groups per compute unit",
    "max_work_items_per_unit": "work-items per compute unit",
    "local_memory_bytes": "local memory per compute unit",
    "registers": "registers per compute unit",
}  # fmt: skip
_CACHE_NUMBERS: Final = {
    "size_bytes": "size", "reported_size_bytes": "size that the\nsystem reports",
    "line_bytes": "line", "ways": "ways", "shared_by": "compute units\nthat share it",
    "latency_s": "latency", "load_bytes_per_s": "loads", "copy_bytes_per_s": "copy",
}  # fmt: skip
_AXIS_UNITS: Final[Mapping[str, AxisUnit]] = {
    "bytes per second": "B/s", "per second": "op/s", "seconds": "s", "bytes": "B",
}  # fmt: skip


def unit_of(key: str, largest: float) -> tuple[float, str]:
    """Choose the scale and unit in which a number with that key is best read."""
    scales = next((units for end, units in _SCALES.items() if key.endswith(end)), ((1.0, ""),))
    # What rounds to the next unit is read in it: 1000 ns is 1 us.
    return next((scale for scale in scales if abs(largest) >= 0.9995 * scale[0]), scales[-1])


def _write_number(value: float) -> str:
    """Write a number with three digits; larger ones whole."""
    is_whole = float(value).is_integer() or abs(value) >= 1000
    return f"{value:.0f}" if is_whole else f"{value:.3g}"


def write_trait(key: str, trait: Trait[Any] | None) -> str:
    """Write a number of a description in the unit that its key ends in; a dash for none."""
    if trait is None:
        return "-"
    scale, unit = unit_of(key, trait.value)
    return f"{_write_number(trait.value / scale)} {unit}".strip()


def write_interval(key: str, trait: Trait[Any]) -> str:
    """Write a number's interval in its unit; empty where it has none."""
    if trait.low is None or trait.high is None:
        return ""
    scale, _ = unit_of(key, trait.value)
    return f"{_write_number(trait.low / scale)} - {_write_number(trait.high / scale)}"


def _show(
    key: str,
    number: Trait[Any] | Mapping[int, Trait[Any]] | None,
    clock: Trait[float] | None = None,
    label: str = "",
) -> Value:
    """Make the cell of a number, in cycles too; of several by independent instructions, each."""
    if number is None:
        return None
    if isinstance(number, Mapping):
        cells = (_show(key, one, clock, f"ILP {level}: ") for level, one in sorted(number.items()))
        return [cell for cell in cells if isinstance(cell, Cell)]
    text = label + write_trait(key, number)
    if clock is not None:
        text += f" = {_write_number(number.value * clock.value)} cy"
    # Pages show the interval and the source, terminals a letter.
    remark = " ".join(filter(None, (write_interval(key, number), str(number.source))))
    return Cell(text, remark=remark, hint=number.origin, mark=MARKS[number.source])


def _number(key: str, clock: Trait[float] | None = None) -> tuple[str, Field]:
    return "number", lambda record: _show(key, getattr(record, key), clock)


def _name_cache(cache: CacheFacts) -> str:
    words = {"victim": cache.is_victim, "inclusive": cache.is_inclusive, cache.write_policy: True}
    about = ", ".join(word for word, holds in words.items() if word and holds)
    return f"{cache.name} ({about})" if about else cache.name


def _name_cost(name: str) -> str:
    ends = (("_bytes_per_s", ", bandwidth"), ("_per_s", ""), ("_s", ""))
    end, words = next((one for one in ends if name.endswith(one[0])), ("", ""))
    return name.removesuffix(end).replace("_", " ") + words


def describe_machine(machine: MachineDescription, *, has_figures: bool = True) -> list[Part]:
    """Describe a machine: the microbenchmarks paper's Table III and figures, and the rest."""
    clock = machine.clock_hz
    spaces = [memory for memory in machine.memories if len(memory.load_bytes_per_s) > 1]
    key = "load_bytes_per_s"
    first = {
        "Computations": Table.of(
            machine.instructions,
            {
                "instruction": ("text", "name"), "performance": _number("peak_per_s"),
                "issue latency": _number("issue_latency_s", clock),
                "completion latency": _number("completion_latency_s", clock),
                "ridge point\nwork-items": _number("ridge_work_items"),
            },
            note="Latencies are per instruction of a warp (on CPUs: of a work-item), by the number "
            "of independent instructions (ILP); the ridge point is the number of concurrent "
            "work-items per compute unit that reach 95 % of the peak.",
        ),
        "Memories": Table.of(
            machine.memories,
            {
                "": ("text", lambda one: f"{one.space} memory"),
                "loads, best element": ("number", lambda one: (
                    _show(key, _find_best(one.load_bytes_per_s.values()))
                )),
                "copy": _number("copy_bytes_per_s"), "latency": _number("latency_s", clock),
            },
            note="Bandwidth of all compute units together; the latency is that of a dependent "
            "load.",
        ),
        "Load bandwidth by element size": Table(
            columns={"element": "text"} | {f"{space.space} memory": "number" for space in spaces},
            rows=[
                (f"{size} B", *(_show(key, space.load_bytes_per_s.get(size)) for space in spaces))
                for size in sorted({size for space in spaces for size in space.load_bytes_per_s})
            ],
        ),
        "Caches": Table.of(
            machine.caches,
            {"": ("text", _name_cache)} | {
                title: _number(name, clock if name == "latency_s" else None)
                for name, title in _CACHE_NUMBERS.items()
            },
        ),
    }  # fmt: skip
    numbers = {
        "Device": [
            (title, name, getattr(machine, name)) for name, title in _DEVICE_NUMBERS.items()
        ],
        "Other costs": [(_name_cost(name), name, one) for name, one in machine.costs.items()],
    }
    last = {
        title: Table(
            columns={"": "text", "value": "number"},
            rows=[(label, _show(name, trait)) for label, name, trait in rows if trait is not None],
        )
        for title, rows in numbers.items()
    }
    figures = plan_figures(machine) if has_figures else []
    parts: list[tuple[str, Part]] = [
        *((title, table) for title, table in first.items() if table.rows),
        *((figure.title, figure) for figure in figures),
        *((title, table) for title, table in last.items() if table.rows),
    ]
    if machine.not_obtained:
        parts.append(("Not obtained", machine.not_obtained))
    return [Section(title=title, parts=[part]) for title, part in parts]


def list_sources(machine: MachineDescription) -> str:
    """Explain the letters behind a machine's numbers; empty where all are measured."""
    sources = {trait.source for trait in list_numbers(machine).values()}
    letters = [f"({MARKS[one]}) {one}" for one in TraitSource if one in sources and MARKS[one]]
    measured = "no letter: measured; " if TraitSource.MEASURED in sources else ""
    return f"{measured}{', '.join(letters)}" if letters else ""


def save_machine_page(path: Path, machines: Sequence[MachineDescription]) -> None:
    articles = []
    for machine in machines:
        day = f"calibrated {machine.calibrated_on}" if machine.calibrated_on else ""
        about = (str(machine.kind), machine.id, machine.platform, machine.driver, day)
        hint = (
            "Below each number: its 95 % interval and its source; point at the source for its "
            "origin. Sizes of caches and memories are in powers of two, rates in powers of ten."
        )
        articles.append(Section(
            title=machine.name, about=" \N{MIDDLE DOT} ".join(filter(None, about)),
            parts=[hint, *describe_machine(machine)],
        ))  # fmt: skip
    save_page(path, "Calibration: " + ", ".join(one.id for one in machines), *articles)


def _find_best(traits: Iterable[Trait[float]]) -> Trait[float] | None:
    return max(traits, key=lambda one: one.value, default=None)


def list_headlines(machine: MachineDescription) -> list[tuple[str, str]]:
    """List the few numbers by which people know a device."""
    headlines = []
    single, memory = machine.instruction("fp32"), machine.memory("global")
    if single is not None and single.peak_per_s is not None:
        headlines.append(("single precision", write_trait("peak_per_s", single.peak_per_s)))
    if memory is not None and memory.load_bytes_per_s:
        best = _find_best(memory.load_bytes_per_s.values())
        headlines.append(("loads from memory", write_trait("load_bytes_per_s", best)))
    sizes = [
        f"{cach.name} {write_trait('size_bytes', cach.size_bytes)}"
        for cach in machine.caches
        if cach.size_bytes is not None
    ]
    return headlines + ([("caches", ", ".join(sizes))] if sizes else [])


def plan_figures(machine: MachineDescription) -> list[Figure]:
    """Sort a description's curves into the figures of the microbenchmarks paper."""
    kinds: dict[str, list[Curve]] = {kind: [] for kind in _FIGURES}
    for curve in sorted(machine.curves, key=lambda one: one.name.partition("/")[0]):
        kind, _, rest = curve.name.partition("/")
        if kind == "walk" and rest != "global":
            kind = "walk elsewhere"
        # Of a roofline, chains that are independent of each other are in Fig. 3.
        if len(curve.x) > 1 and not (kind == "roofline" and "/ilp" in curve.name):
            kinds.setdefault(kind, []).append(curve)
    return [_plan(kind, curves, machine) for kind, curves in kinds.items() if curves]


def _plan(kind: str, curves: Sequence[Curve], machine: MachineDescription) -> Figure:
    title, caption = _FIGURES.get(kind, (kind.capitalize().replace("_", " "), ""))
    is_panelled = kind in {"latency", "walk elsewhere"}
    panels: dict[str, list[Curve]] = {}
    for curve in curves:
        parts = curve.name.split("/")
        panel = parts[1] if is_panelled and len(parts) > 1 else ""
        panels.setdefault(panel or f"{curve.x_name}, {curve.y_name}", []).append(curve)
    charts = []
    for panel, own in panels.items():
        # Curves are named by what tells them from their neighbours.
        names, series = [one.name.split("/") for one in own], []
        telling = [len({*same}) > 1 for same in zip_longest(*names, fillvalue="")]
        for one, name in zip(own, names, strict=True):
            text = " ".join(compress(name, telling)) or name[-1]
            text = re.sub(r"\bilp(\d+)\b", r"ILP \1", text).replace("_", " ")
            low, high = one.low or (), one.high or ()
            series.append(make_series(text, one.x, one.y, "line", low=low, high=high))
        if kind == "walk":
            series += _list_levels(machine, own[0])
        charts.append(Chart(
            x=_make_axis(own[0].x_name, [value for one in own for value in one.x]),
            y=_make_axis(own[0].y_name, [value for one in own for value in one.y]),
            series=tuple(series), title=panel.replace("_", " ") if is_panelled else "",
        ))  # fmt: skip
    return Figure(
        name=re.sub(r"[ _]", "-", kind), title=title, caption=caption, charts=tuple(charts),
        heights=(4.2,) if len(panels) == 1 else (2.7,),
    )  # fmt: skip


def _list_levels(machine: MachineDescription, walk: Curve) -> Iterator[Series]:
    """List the caches within a walk, each as its latency up to its size."""
    for cache in machine.caches:
        size = None if cache.size_bytes is None else float(cache.size_bytes.value)
        if size is None or not min(walk.x) < size < max(walk.x):
            continue
        latency_s = max(walk.y) if cache.latency_s is None else float(cache.latency_s.value)
        x, y = [size, size], [latency_s, min(walk.y)]
        if cache.latency_s is not None:
            x, y = [min(walk.x), *x], [latency_s, *y]
        yield make_series(cache.name, x, y, "guide")


def _make_axis(name: str, values: Sequence[float]) -> Axis:
    """Make an axis; it goes by factors where its numbers are far apart."""
    unit: AxisUnit = next((unit for words, unit in _AXIS_UNITS.items() if words in name), "")
    is_log = min(values) > 0 and max(values) > 12.0 * min(values)
    return Axis(title=name, unit=unit, is_log=is_log)


_FIGURES: Final = {
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
"""Titles and captions by what was measured, in the order of a report."""


def list_doubts(machine: MachineDescription, today: date | None = None) -> list[str]:
    """Say what speaks against the numbers of a calibration; nothing of good ones."""
    doubts = []
    peaks = {instruction.name: instruction.peak_per_s for instruction in machine.instructions}
    single, double = peaks.get("fp32"), peaks.get("fp64")
    if single is not None and double is not None and double.value > 1.1 * single.value:
        doubts.append(
            "it was disturbed: double precision is faster than single precision, which cannot be"
        )
    judged: list[Trait[Any] | None] = [one.peak_per_s for one in machine.instructions]
    for cache in machine.caches:
        judged += (cache.latency_s, cache.load_bytes_per_s, cache.copy_bytes_per_s)
    for memory in machine.memories:
        judged += (*memory.load_bytes_per_s.values(), memory.copy_bytes_per_s, memory.latency_s)
    judged += machine.costs.values()
    widths = [
        (one.high - one.low) / 2 / abs(one.value)
        for one in judged
        if one is not None and one.source is TraitSource.MEASURED
        and one.low is not None and one.high is not None and one.value
    ]  # fmt: skip
    # Undisturbed calibrations stay far below.
    if widths and median(widths) > 0.2:
        share = f"{median(widths) * 100:.0f} %"
        doubts.append(f"it was disturbed: half of its numbers are known to {share} only")
    age = find_age_days(machine, today)
    if age is not None and age > 180:
        doubts.append(f"it is {age} days old: drivers and clocks may have changed since")
    if machine.not_obtained:
        doubts.append(f"{len(machine.not_obtained)} numbers could not be obtained")
    return doubts


def find_age_days(machine: MachineDescription, today: date | None = None) -> int | None:
    """Count the days since a calibration; None where its day is not known."""
    try:
        day = date.fromisoformat(machine.calibrated_on[:10])
    except ValueError:
        return None
    return ((today or datetime.now(UTC).date()) - day).days


def compare_machines(
    first: MachineDescription, second: MachineDescription
) -> list[dict[str, Any]]:  # fmt: skip
    """Pair the numbers of two descriptions, in the order of the files."""
    ours, theirs = list_numbers(first), list_numbers(second)
    # What belongs together stands next to each other though only one description has it.
    keys = {
        name: (name.partition(".")[0] if "." in name else "", name.rpartition(".")[0], name)
        for name in (*ours, *theirs)
    }
    places: dict[tuple[int, str], int] = {}
    for place, own in enumerate(keys.values()):
        for level in enumerate(own):
            places.setdefault(level, place)
    ordered = sorted(keys, key=lambda name: [places[level] for level in enumerate(keys[name])])
    pairs = []
    for name in ordered:
        one, other, ratio, overlap = ours.get(name), theirs.get(name), None, None
        if one is not None and other is not None:
            ratio = float(other.value / one.value) if one.value else None
            (low, high), (other_low, other_high) = (
                [trait.value if end is None else end for end in (trait.low, trait.high)]
                for trait in (one, other)
            )
            overlap = bool(low <= other_high and other_low <= high)
        pairs.append({"name": name, "first": one, "second": other, "ratio": ratio,
                      "intervals_overlap": overlap})  # fmt: skip
    return pairs


def list_numbers(machine: MachineDescription) -> dict[str, Trait[Any]]:
    """List each number of a description by its keys in the files; curves are left out."""
    return dict(_walk("", replace(machine, curves=())))


def _walk(name: str, value: object) -> Iterator[tuple[str, Trait[Any]]]:
    children: Iterable[tuple[object, object]] = ()
    if isinstance(value, Trait):
        yield name, value
    elif isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, tuple):
        children = ((getattr(one, fields(one)[0].name), one) for one in value)
    elif is_dataclass(value):
        children = ((one.name, getattr(value, one.name)) for one in fields(value))
    for key, one in children:
        yield from _walk(f"{name}.{key}".lstrip("."), one)
