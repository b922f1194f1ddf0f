"""Values of ids, sizes and scalar arguments for the work-items of some work-groups."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.axes import Axis, list_axes
from kernelcast.expressions.evaluation import IntArray
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.records.arguments import Argument, ScalarArgument
from kernelcast.records.errors import NDRangeError
from kernelcast.records.ndrange import NDRange

Numbers = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkItems:
    """Work-items of some work-groups, with what their ids and sizes are.

    Parameters
    ----------
    bindings : dict of Symbol to int or ndarray of int64, shape (work-groups, work-items)
        Ids of each work-item, in the order of local linear ids; sizes and offsets as ints, but
        for the local size where a remainder work-group has another one.
    is_present : ndarray of bool, shape (work-groups, work-items)
        False where a remainder work-group has no such work-item; its ids are those of the first.
    """

    bindings: dict[Symbol, Value]
    is_present: npt.NDArray[np.bool_]

    @property
    def work_items(self) -> tuple[int, ...]:
        """Work-items of each work-group."""
        return tuple(int(count) for count in self.is_present.sum(axis=1))


def bind_ids(ndrange: NDRange, groups: Sequence[int]) -> WorkItems:
    """Give ids and sizes of the work-items of some work-groups.

    Parameters
    ----------
    ndrange : NDRange
        The index space; its local size is chosen.
    groups : sequence of int
        Numbers of work-groups, dimension 0 fastest.

    Raises
    ------
    NDRangeError
        If the local size is not chosen, or there is no such work-group.

    Examples
    --------
    >>> items = bind_ids(NDRange(global_size=(10,), local_size=(4,)), [0, 2])
    >>> items.bindings[Symbol(SymbolKind.GLOBAL_ID)]
    array([[0, 1, 2, 3],
           [8, 9, 8, 8]])
    >>> items.work_items
    (4, 2)
    """
    numbers = np.asarray(groups, dtype=np.int64).reshape(-1, 1)
    _check(numbers, ndrange)
    axes = list_axes(ndrange)
    places, sizes = _locate(numbers, axes)
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
    """Give the whole numbers that a kernel is called with, by the names of their symbols.

    Parameters
    ----------
    arguments : sequence of Argument
        In the kernel's order.

    Returns
    -------
    dict of str to int
        Lanes of vectors are named ``name.s0`` and so on. Floating-point numbers are left out, for
        no address or count is made of them, and members of structs are not known.
    """
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
    """Look up what work-items read from buffers whose contents are known.

    Parameters
    ----------
    facts : KernelFacts
        With `contents`.
    bindings : mapping of Symbol to int or ndarray of int64
        Ids, sizes and scalars.
    contents : mapping of str to ndarray
        What buffers hold, by the names of their parameters; the kernel says of which type.
    shape : tuple of int
        Work-groups and work-items.

    Returns
    -------
    dict of Symbol to ndarray of int64 of that shape
        Those that can be looked up. Work-items that a condition keeps from reading beyond the
        buffer get what stands at its end.
    """
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


def _check(numbers: npt.NDArray[np.int64], ndrange: NDRange) -> None:
    count = ndrange.work_group_count
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    if wrong.size:
        msg = f"work-group {wrong[0]} is asked for; the index space has 0 to {count - 1}"
        raise NDRangeError(msg)


def _locate(numbers: IntArray, axes: Sequence[Axis]) -> tuple[list[IntArray], list[IntArray]]:
    """Give group ids and sizes of work-groups per dimension, remainders cut."""
    places, sizes = [], []
    rest = numbers
    for axis in axes:
        place, rest = rest % axis.groups, rest // axis.groups
        places.append(place)
        sizes.append(np.minimum(axis.local, axis.items - place * axis.local))
    return places, sizes
