"""Joins what is known of a device from several sources into one description."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from kernelcast.records.machine import (
    INSTRUCTIONS,
    SPACES,
    CacheFacts,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.traits import Trait, TraitSource

Facts = TypeVar("Facts", InstructionFacts, CacheFacts, MemoryFacts)
Record = TypeVar("Record", InstructionFacts, CacheFacts, MemoryFacts, MachineDescription)
Key = TypeVar("Key", bound=Hashable)

# A number of a higher rank is kept when one of a lower rank arrives later.
_RANKS = {
    TraitSource.ASSUMED: 0,
    TraitSource.COMPUTED: 1,
    TraitSource.REPORTED: 2,
    TraitSource.PUBLISHED: 2,
    TraitSource.MEASURED: 3,
}


def merge_machines(known: MachineDescription, added: MachineDescription) -> MachineDescription:
    """Add what a second description says to a first."""
    joined = _merge_fields(known, added, skip=("id", "name", "kind", "platform", "driver"))
    missing = {**_still_missing(known.not_obtained, added), **added.not_obtained}
    return replace(
        joined,
        instructions=_merge_facts(
            known.instructions, added.instructions, lambda one: INSTRUCTIONS.index(one.name)
        ),
        caches=_merge_facts(known.caches, added.caches, lambda one: one.name),
        memories=_merge_facts(known.memories, added.memories, lambda one: SPACES.index(one.space)),
        curves=tuple({one.name: one for one in (*known.curves, *added.curves)}.values()),
        not_obtained=missing,
    )


def _merge_facts(
    known: Iterable[Facts], added: Iterable[Facts], order: Callable[[Facts], Any]
) -> tuple[Facts, ...]:
    """Join facts of the same name, in a fixed order."""
    by_place = {order(one): one for one in known}
    for one in added:
        place = order(one)
        old = by_place.get(place)
        by_place[place] = one if old is None else _merge_fields(old, one)
    return tuple(by_place[place] for place in sorted(by_place))


def _merge_fields(known: Record, added: Record, *, skip: tuple[str, ...] = ()) -> Record:
    changes: dict[str, Any] = {}
    for one in fields(known):
        old, new = getattr(known, one.name), getattr(added, one.name)
        if one.name in skip or isinstance(new, tuple):
            continue
        if isinstance(new, Mapping):
            changes[one.name] = _merge_mapping(old, new)
        elif new not in {None, ""} and _is_at_least_as_good(new, old):
            changes[one.name] = new
    return replace(known, **changes)


def _merge_mapping(known: Mapping[Key, Any], added: Mapping[Key, Any]) -> dict[Key, Any]:
    better = {
        key: value for key, value in added.items() if _is_at_least_as_good(value, known.get(key))
    }
    return {**known, **better}


def _is_at_least_as_good(new: object, old: object) -> bool:
    if not (isinstance(new, Trait) and isinstance(old, Trait)):
        return True
    return _RANKS[new.source] >= _RANKS[old.source]


def _still_missing(missing: Mapping[str, str], added: MachineDescription) -> Mapping[str, str]:
    obtained = {*_list_obtained(added)}
    return {name: reason for name, reason in missing.items() if name not in obtained}


def _list_obtained(machine: MachineDescription) -> Iterator[str]:
    """List the names under which a microbenchmark would list what is there as missing."""
    yield from machine.costs
    yield from (curve.name for curve in machine.curves)
    for instruction in machine.instructions:
        yield from (instruction.name, f"instructions/{instruction.name}")
        if instruction.peak_per_s is not None:
            yield f"peak/{instruction.name}"
    for section, facts in (("caches", machine.caches), ("memories", machine.memories)):
        for fact in facts:
            name = fact.name if isinstance(fact, CacheFacts) else fact.space
            yield from (name, f"{section}/{name}")
            told = (member.name for member in fields(fact) if getattr(fact, member.name))
            yield from (f"{section}/{name}/{member}" for member in told)
