"""Lists a machine description's numbers one by one, and two descriptions' side by side."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from kernelcast.launches.machine_file import NAMED_BY
from kernelcast.records.machine import (
    CacheFacts,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.plain import to_plain
from kernelcast.records.traits import Trait


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberPair:
    """One number of two machine descriptions."""

    name: str
    """Keys as in the files: ``caches.L1.size_bytes``."""
    first: Trait[Any] | None
    second: Trait[Any] | None
    """The number in each; None where it is not known."""

    @property
    def ratio(self) -> float | None:
        """The second over the first; None where either is missing or the first is zero."""
        if self.first is None or self.second is None or not self.first.value:
            return None
        return float(self.second.value / self.first.value)

    @property
    def is_within(self) -> bool | None:
        """Whether the intervals overlap; None where a number is missing.

        A number without an interval is an interval of no width.
        """
        if self.first is None or self.second is None:
            return None
        (low, high), (other_low, other_high) = _bounds(self.first), _bounds(self.second)
        return bool(low <= other_high and other_low <= high)

    def to_row(self) -> dict[str, object]:
        """List both numbers with their intervals and sources, and how they compare."""
        row: dict[str, object] = {"name": self.name}
        for which, one in (("first", self.first), ("second", self.second)):
            for name in ("value", "low", "high", "source", "origin"):
                row[f"{which}_{name}"] = None if one is None else getattr(one, name)
        return row | {"ratio": self.ratio, "intervals_overlap": self.is_within}


def compare_machines(first: MachineDescription, second: MachineDescription) -> list[NumberPair]:
    """Pair the numbers of two descriptions, in the order of the files."""
    ours, theirs = list_numbers(first), list_numbers(second)
    return [
        NumberPair(name=name, first=ours.get(name), second=theirs.get(name))
        for name in _sections(dict.fromkeys((*ours, *theirs)))
    ]


def list_numbers(machine: MachineDescription) -> dict[str, Trait[Any]]:
    """List each number of a description by its keys; curves are left out."""
    return dict(_walk("", machine))


def comparison_to_json(pairs: list[NumberPair]) -> list[dict[str, object]]:
    """Turn a comparison into what `kernelcast calibrate --compare A B --json` prints."""
    return [
        {
            "name": pair.name,
            "first": None if pair.first is None else to_plain(pair.first),
            "second": None if pair.second is None else to_plain(pair.second),
            "ratio": pair.ratio,
            "intervals_overlap": pair.is_within,
        }
        for pair in pairs
    ]


def _walk(name: str, value: object) -> Iterator[tuple[str, Trait[Any]]]:
    if isinstance(value, Trait):
        yield name, value
    for key, one in _children(value):
        yield from _walk(f"{name}.{key}".lstrip("."), one)


def _children(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, tuple):
        return ((getattr(one, NAMED_BY[type(one)]), one) for one in value)
    if isinstance(value, MachineDescription | InstructionFacts | CacheFacts | MemoryFacts):
        return ((one.name, getattr(value, one.name)) for one in fields(value))
    return ()


def _sections(names: Mapping[str, None]) -> list[str]:
    """Keep what belongs together next to each other though only one description has it."""
    order = {name: place for place, name in enumerate(names)}
    groups: dict[str, int] = {}
    for name, place in order.items():
        groups.setdefault(name.rpartition(".")[0], place)
    tops: dict[str, int] = {}
    for name, place in order.items():
        tops.setdefault(name.partition(".")[0] if "." in name else "", place)

    def place_of(name: str) -> tuple[int, int, int]:
        top = name.partition(".")[0] if "." in name else ""
        return tops[top], groups[name.rpartition(".")[0]], order[name]

    return sorted(names, key=place_of)


def _bounds(trait: Trait[Any]) -> tuple[float, float]:
    low = trait.value if trait.low is None else trait.low
    high = trait.value if trait.high is None else trait.high
    return low, high
