"""Dimensions of an index space, and the values of ids and sizes along them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.symbols import BoolArray, Symbol, SymbolKind, Value
from kernelcast.records.errors import NDRangeError
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange

Number = TypeVar("Number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension of an index space; one work-item long where the index space has it not."""

    number: int
    items: int = 1
    groups: int = 1
    """Work-items and work-groups along it."""
    local: int = 1
    """Work-items of a whole work-group along it; the last work-group may have fewer."""
    offset: int = 0

    def bind(self, group: Value, local: Value, local_size: Value) -> dict[Symbol, Value]:
        return {
            Symbol(SymbolKind.LOCAL_ID, axis=self.number): local,
            Symbol(SymbolKind.GROUP_ID, axis=self.number): group,
            Symbol(SymbolKind.GLOBAL_ID, axis=self.number): (
                group * self.local + local + self.offset
            ),
            **self.bind_sizes(local_size),
        }

    def bind_sizes(self, local_size: Number) -> dict[Symbol, Number | int]:
        return {
            Symbol(SymbolKind.LOCAL_SIZE, axis=self.number): local_size,
            Symbol(SymbolKind.GLOBAL_SIZE, axis=self.number): self.items,
            Symbol(SymbolKind.GROUP_COUNT, axis=self.number): self.groups,
            Symbol(SymbolKind.GLOBAL_OFFSET, axis=self.number): self.offset,
        }


def bind_names(scalars: Mapping[str, Number]) -> dict[Symbol, Number]:
    return {Symbol(SymbolKind.SCALAR, name): value for name, value in scalars.items()}


def list_axes(ndrange: NDRange) -> tuple[Axis, Axis, Axis]:
    """Give the three dimensions of an index space whose local size is chosen."""
    used = zip(
        ndrange.global_size, ndrange.group_counts, ndrange.known_local_size, ndrange.global_offset,
        strict=True,
    )  # fmt: skip
    axes = [
        Axis(number=number, items=items, groups=groups, local=local, offset=offset)
        for number, (items, groups, local, offset) in enumerate(used)
    ]
    axes += [Axis(number=number) for number in range(len(axes), MAX_DIMENSIONS)]
    x, y, z = axes
    return x, y, z


def bind_ids(ndrange: NDRange, groups: Sequence[int]) -> tuple[dict[Symbol, Value], BoolArray]:
    """Give ids and sizes of work-items, each an int or an array of shape (work-groups, work-items),
    and which of the latter there are."""
    rest = np.asarray(groups, dtype=np.int64).reshape(-1, 1)
    count = ndrange.work_group_count
    wrong = rest[(rest < 0) | (rest >= count)]
    if wrong.size:
        msg = f"work-group {wrong[0]} is asked for; the index space has 0 to {count - 1}"
        raise NDRangeError(msg)
    axes = list_axes(ndrange)
    places, sizes = [], []
    for axis in axes:
        place, rest = rest % axis.groups, rest // axis.groups
        places.append(place)
        sizes.append(np.minimum(axis.local, axis.items - place * axis.local))
    linear = np.arange(ndrange.work_group_size, dtype=np.int64)[None, :]
    is_present = linear < math.prod(sizes)
    rest = np.where(is_present, linear, 0)
    bindings: dict[Symbol, Value] = {}
    for axis, place, size in zip(axes, places, sizes, strict=True):
        local, rest = rest % size, rest // size
        is_whole = bool((size == axis.local).all())
        own_size = axis.local if is_whole else np.broadcast_to(size, local.shape)
        group = np.broadcast_to(place, local.shape) if axis.groups > 1 else 0
        bindings |= axis.bind(group, local, own_size)
    return bindings, is_present


def add_iterations(
    loop: LoopFacts, bound: Mapping[Symbol, Value], active: BoolArray, listed: int
) -> tuple[dict[Symbol, Value], BoolArray]:
    """Add the first iterations of a loop as columns, and tell where they are executed."""
    wide: dict[Symbol, Value] = {
        symbol: np.repeat(value, listed, axis=1)
        if isinstance(value, np.ndarray) and value.shape[1] > 1
        else value
        for symbol, value in bound.items()
    }
    numbers = np.tile(np.arange(listed, dtype=np.int64), active.shape[1])[None, :]
    wide[loop.symbol] = numbers
    runs = np.logical_and(np.repeat(active, listed, axis=1), loop.condition.evaluate(wide))
    return wide, runs
