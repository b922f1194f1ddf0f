"""The tables of a machine's report: the microbenchmarks paper's Table III, and the rest."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kernelcast.records.machine import CacheFacts, MachineDescription
from kernelcast.records.traits import Trait
from kernelcast.reports.machine.quantities import format_interval, format_number, format_traits

_ILP = (1, 2, 4)
_HEADLINE_INSTRUCTION = "fp32"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNumber:
    """A number with where it is from."""

    label: str
    """What it is for, where a cell has several."""
    text: str
    interval: str
    """The number, and its interval, with units."""
    source: str
    origin: str
    """Whether it was measured, reported, published or assumed, and by what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Numbers of one key; several are alternatives such as 1, 2, 4 independent instructions."""

    key: str
    """The key, whose end is the unit."""
    traits: tuple[Trait[Any] | None, ...]
    labels: tuple[str, ...] = ()
    """What each is for."""
    clock_hz: float | None = None
    """If given, times are shown in cycles as well."""

    @property
    def numbers(self) -> list[ShownNumber]:
        """The numbers that are known, as pages show them."""
        labels = self.labels or ("",) * len(self.traits)
        pairs = zip(labels, self.traits, strict=True)
        return [self._show(label, one) for label, one in pairs if one is not None]

    def _show(self, label: str, trait: Trait[Any]) -> ShownNumber:
        text = format_traits(self.key, (trait,), marks=False)
        if self.clock_hz is not None:
            text += f" = {format_number(trait.value * self.clock_hz)} cy"
        return ShownNumber(
            label=label, text=text, interval=format_interval(self.key, trait),
            source=str(trait.source), origin=trait.origin,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table: its first column is text, the others are cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    note: str = ""


def make_tables(machine: MachineDescription) -> list[ReportTable]:
    """Give the tables of a description that have rows."""
    tables = (
        _make_device(machine),
        _make_computations(machine),
        _make_memories(machine),
        _make_bandwidths(machine),
        _make_caches(machine),
        _make_costs(machine),
    )
    return [one for one in tables if one.rows]


def list_headlines(machine: MachineDescription) -> list[tuple[str, str]]:
    """Give the few numbers by which people know a device."""
    return list(_find_headlines(machine))


def _find_headlines(machine: MachineDescription) -> Iterator[tuple[str, str]]:
    instruction = machine.instruction(_HEADLINE_INSTRUCTION)
    if instruction is not None and instruction.peak_per_s is not None:
        yield "single precision", _write("peak_per_s", instruction.peak_per_s)
    memory = machine.memory("global")
    if memory is not None and memory.load_bytes_per_s:
        best = _best(memory.load_bytes_per_s.values())
        yield (
            "loads from memory",
            _write("load_bytes_per_s", best),
        )
    sized = [one for one in machine.caches if one.size_bytes is not None]
    if sized:
        sizes = (f"{one.name} {_write('size_bytes', one.size_bytes)}" for one in sized)
        yield "caches", ", ".join(sizes)


def _write(key: str, trait: Trait[Any] | None) -> str:
    return format_traits(key, (trait,), marks=False)


def _one(key: str, trait: Trait[Any] | None, clock_hz: float | None = None) -> Cell:
    return Cell(key=key, traits=(trait,), clock_hz=clock_hz)


def _by_ilp(key: str, traits: Mapping[int, Trait[float]], clock_hz: float | None) -> Cell:
    levels = sorted({*traits} or {1}) if not set(traits) <= set(_ILP) else _ILP
    found = tuple(traits.get(level) for level in levels)
    labels = tuple(f"ILP {level}" for level in levels)
    return Cell(key=key, traits=found, labels=labels, clock_hz=clock_hz)


def _make_device(machine: MachineDescription) -> ReportTable:
    names = {
        "compute_units": "compute units",
        "warp_width": "warp width",
        "clock_hz": "clock",
        "max_work_group_size": "largest work-group",
        "max_work_groups_per_unit": "work-groups per compute unit",
        "max_work_items_per_unit": "work-items per compute unit",
        "local_memory_bytes": "local memory per compute unit",
        "registers": "registers per compute unit",
    }
    found = [(title, key, getattr(machine, key)) for key, title in names.items()]
    rows = tuple((title, (_one(key, one),)) for title, key, one in found if one is not None)
    return ReportTable(title="Device", columns=("", "value"), rows=rows)


def _make_computations(machine: MachineDescription) -> ReportTable:
    clock = _clock(machine)
    rows = tuple(
        (
            one.name,
            (
                _one("peak_per_s", one.peak_per_s),
                _by_ilp("issue_latency_s", one.issue_latency_s, clock),
                _by_ilp("completion_latency_s", one.completion_latency_s, clock),
                _one("ridge_work_items", one.ridge_work_items),
            ),
        )
        for one in machine.instructions
    )
    return ReportTable(
        title="Computations",
        columns=(
            "instruction", "performance", "issue latency\nILP 1/2/4",
            "completion latency\nILP 1/2/4", "ridge point\nwork-items",
        ),
        rows=rows,
        note="Latencies are per instruction of a warp (on CPUs: of a work-item); the ridge point "
        "is the number of concurrent work-items per compute unit that reach 95 % of the peak.",
    )  # fmt: skip


def _make_memories(machine: MachineDescription) -> ReportTable:
    clock = _clock(machine)
    rows = [
        (
            f"{one.space} memory",
            (
                _one("load_bytes_per_s", _best(one.load_bytes_per_s.values())),
                _one("copy_bytes_per_s", one.copy_bytes_per_s),
                _one("latency_s", one.latency_s, clock),
            ),
        )
        for one in machine.memories
    ]
    return ReportTable(
        title="Memories",
        columns=("", "loads, best element", "copy", "latency"),
        rows=tuple(rows),
        note="Bandwidth of all compute units together; the latency is that of a dependent load.",
    )


def _make_bandwidths(machine: MachineDescription) -> ReportTable:
    spaces = [one for one in machine.memories if len(one.load_bytes_per_s) > 1]
    sizes = sorted({size for one in spaces for size in one.load_bytes_per_s})
    rows = tuple(
        (
            f"{size} B",
            tuple(_one("load_bytes_per_s", one.load_bytes_per_s.get(size)) for one in spaces),
        )
        for size in sizes
    )
    columns = ("element", *(f"{one.space} memory" for one in spaces))
    return ReportTable(title="Load bandwidth by element size", columns=columns, rows=rows)


def _make_caches(machine: MachineDescription) -> ReportTable:
    clock = _clock(machine)
    rows = tuple((_name_cache(one), _cache_cells(one, clock)) for one in machine.caches)
    return ReportTable(
        title="Caches",
        columns=(
            "", "size", "size that the\nsystem reports", "line", "ways",
            "compute units\nthat share it", "latency", "loads", "copy",
        ),
        rows=rows,
    )  # fmt: skip


def _cache_cells(cache: CacheFacts, clock_hz: float | None) -> tuple[Cell, ...]:
    keys = ("size_bytes", "reported_size_bytes", "line_bytes", "ways", "shared_by", "latency_s",
            "load_bytes_per_s", "copy_bytes_per_s")  # fmt: skip
    return tuple(
        _one(key, getattr(cache, key), clock_hz if key == "latency_s" else None) for key in keys
    )


def _name_cache(cache: CacheFacts) -> str:
    told = [
        "victim" if cache.is_victim else "",
        "inclusive" if cache.is_inclusive else "",
        cache.write_policy,
    ]
    return " ".join([cache.name, f"({', '.join(filter(None, told))})" if any(told) else ""]).strip()


def _make_costs(machine: MachineDescription) -> ReportTable:
    rows = tuple((_name_cost(name), (_one(name, one),)) for name, one in machine.costs.items())
    return ReportTable(title="Other costs", columns=("", "value"), rows=rows)


def _name_cost(name: str) -> str:
    """Say what a cost is of.

    Examples
    --------
    >>> _name_cost("transfer_to_device_bytes_per_s"), _name_cost("launch_s")
    ('transfer to device, bandwidth', 'launch')
    """
    for ending, told in (("_bytes_per_s", ", bandwidth"), ("_per_s", ""), ("_s", "")):
        if name.endswith(ending):
            return name.removesuffix(ending).replace("_", " ") + told
    return name.replace("_", " ")


def _best(traits: Iterable[Trait[float]]) -> Trait[float] | None:
    return max(traits, key=lambda one: one.value, default=None)


def _clock(machine: MachineDescription) -> float | None:
    return None if machine.clock_hz is None else machine.clock_hz.value
