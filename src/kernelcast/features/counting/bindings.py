"""What a launch binds: values of arguments, contents of buffers, and the work-groups to look at."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Condition, EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.axes import list_axes
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.ir.values import sources_of
from kernelcast.records.arguments import Argument, ScalarArgument
from kernelcast.records.errors import NDRangeError
from kernelcast.records.ndrange import NDRange

Numbers = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkItems:
    """Ids and sizes of work-items, each an int or an array of shape (work-groups, work-items)."""

    bindings: dict[Symbol, Value]
    is_present: npt.NDArray[np.bool_]

    @property
    def work_items(self) -> tuple[int, ...]:
        return tuple(int(count) for count in self.is_present.sum(axis=1))


def bind_ids(ndrange: NDRange, groups: Sequence[int]) -> WorkItems:
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
        bindings |= axis.bind(np.broadcast_to(place, local.shape), local, own_size)
    return WorkItems(bindings=bindings, is_present=is_present)


def bind_scalars(facts: KernelFacts, arguments: Sequence[Argument]) -> dict[str, int]:
    """Bind whole-number arguments to names; lanes of vectors are ``name.s0`` and so on."""
    found: dict[str, int] = {}
    for parameter, argument in zip(facts.parameters, arguments, strict=False):
        if not isinstance(argument, ScalarArgument) or argument.element.dtype.kind == "f":
            continue
        if argument.element.lanes == 1:
            found[parameter.name] = int(argument.values[0])
            continue
        for lane, value in enumerate(argument.values):
            found[f"{parameter.name}.s{lane:x}"] = int(value)
    return found


def bind_contents(
    facts: KernelFacts,
    bindings: Mapping[Symbol, Value],
    contents: Mapping[str, Numbers],
    shape: tuple[int, ...],
) -> dict[Symbol, Value]:
    """Look up what work-items read from known buffers; places beyond a buffer read its end."""
    found: dict[Symbol, Value] = {}
    for one in facts.contents:
        held = contents.get(one.buffer)
        if held is None or held.nbytes < one.element_bytes:
            continue
        try:
            offset = one.offset_bytes.evaluate({**bindings, **found})
        except EvaluationError:
            continue
        elements = held.reshape(-1).view(f"{'i' if one.is_signed else 'u'}{one.element_bytes}")
        places = np.clip(np.asarray(offset) // one.element_bytes, 0, elements.size - 1)
        values = elements[places].astype(np.int64)
        found[Symbol(SymbolKind.CONTENT, one.name)] = np.broadcast_to(values, shape)
    return found


def depends_on_contents(facts: KernelFacts) -> bool:
    """Tell whether what a buffer or a by-value structure holds may decide loops or conditions."""
    conditions = _list_conditions(facts)
    if sources_of(*conditions) & {one.name for one in facts.parameters if one.is_pointer}:
        return True
    given = {one.name for one in facts.parameters}
    members = (one.name.split(".") for condition in conditions for one in condition.symbols())
    return any(len(parts) > 1 and parts[0] in given for parts in members)


def find_index_buffers(facts: KernelFacts) -> frozenset[str]:
    """Find read-only buffers if one of them decides how long loops run or conditions hold."""
    read_only = frozenset(
        one.name
        for one in facts.parameters
        if one.is_pointer and one.is_read and not one.is_written and not one.is_volatile
    )
    return read_only if sources_of(*_list_conditions(facts)) & read_only else frozenset()


def _list_conditions(facts: KernelFacts) -> tuple[Condition, ...]:
    return *(one.guard for one in facts.reaches), *(loop.condition for loop in facts.loops)


def choose_work_groups(ndrange: NDRange, count: int = 8, seed: int = 0) -> tuple[int, ...]:
    """Choose work-groups spread over the index space at random steps, first and last among them."""
    total = ndrange.work_group_count
    if total <= count:
        return tuple(range(total))
    if count < 2:
        return (total // 2,)
    strata = count - 2
    draws = iter(np.random.default_rng(seed).integers(1 << 32, size=strata).tolist())
    found, low = [0], 1
    for place in range(1, strata + 1):
        high = 1 + (total - 2) * place // strata
        found.append(low if high == low + 1 else low + (next(draws) * (high - low) >> 32))
        low = high
    return (*found, total - 1)
