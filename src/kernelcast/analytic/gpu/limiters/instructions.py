"""Time of arithmetic: floating point, integers, special functions; and of issuing it all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelcast.analytic.gpu.limiters.demands import Demands
from kernelcast.analytic.gpu.limiters.rates import GpuRates
from kernelcast.analytic.gpu.limiters.schedule import Schedule
from kernelcast.records.operations import MemorySpace, NumberClass, Operation, OperationCounts
from kernelcast.records.operations import OperationKind as Kind

_LANES = 64
"""fp32 lanes of a compute unit where nobody says: V100 to H100 and CDNA have 64 to 128."""
_DIVIDE_SLOTS = 7.5
_ROOT_SLOTS = 9.6
"""Cycles of a warp's fp64 instruction and compute unit on a V100, by gpu-benches' README."""
_SPECIAL_SLOTS = 20.0
"""Instructions of a precise special function: range reduction and a polynomial."""
_INTEGER_DIVIDE_SLOTS = 5.0
"""By a constant, as most divisors are: a multiplication by the inverse, and shifts."""
_WIDE = 64
_ROOTS = ("sqrt", "rsqrt")
_SPECIAL_SHARE = 4
"""Lanes of fp32 over those of special functions, CUDA programming guide, throughput table."""
_SIMPLE = (Kind.COMPARE, Kind.SELECT)
_INTEGER = (Kind.ADD, Kind.MULTIPLY, Kind.LOGIC, Kind.COMPARE, Kind.SELECT, Kind.FUSED)
_UNROLLED = 4
"""Iterations of a loop that share one step of its counter, one comparison and one branch."""
_LOADED_BYTES = 16
"""Most bytes of a work-item that one instruction loads or stores."""
_OPERATIONS_OF_INT32 = 2
"""The microbenchmark of int32 is a multiply-add, which counts as two operations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Instructions of a work-item by the part of a compute unit that executes them."""

    fp32: float
    fp64: float
    integer: float
    special: float
    """Mean per work-item."""


def count_slots(counts: OperationCounts) -> Slots:
    """Count the instructions that operations become.

    Products and sums are contracted into multiply-adds as far as both are there, which OpenCL
    allows by default. Address arithmetic is left out, since compilers remove most of it, and so are
    most steps and comparisons of loop counters, since loops are unrolled.

    Parameters
    ----------
    counts : OperationCounts
        Mean per work-item.

    Examples
    --------
    >>> add, multiply = (
    ...     Operation(kind=kind, number=NumberClass.FLOAT, bits=32)
    ...     for kind in (Kind.ADD, Kind.MULTIPLY)
    ... )
    >>> count_slots(OperationCounts(operations={add: 24, multiply: 25}, memory={})).fp32
    25.0
    """
    return Slots(
        fp32=_count_float(counts, is_wide=False),
        fp64=_count_float(counts, is_wide=True),
        integer=sum(_weigh_integer(one) * times for one, times in _list_integer(counts))
        - _count_unrolled(counts),
        special=float(counts.count(Kind.SPECIAL_NATIVE, per_lane=True)),
    )


def _find_slots(demands: Demands) -> Slots:
    work = demands.work
    if work is None:
        return count_slots(demands.executed)
    return Slots(fp32=work.fp32, fp64=work.fp64, integer=work.integer, special=work.special)


def time_instructions(
    demands: Demands, rates: GpuRates, plan: Schedule, notes: list[str]
) -> dict[str, float]:
    """Compute the time of each kind of arithmetic, in seconds.

    Parameters
    ----------
    demands : Demands
        The launch; idle lanes of partial warps take their slots too.

    Returns
    -------
    dict of str to float
        ``fp32``, ``fp64``, ``int`` and ``special``, those that are used.
    """
    slots = _find_slots(demands)
    fp32 = _peak(rates, "fp32")
    if not fp32:
        fp32 = rates.compute_units * rates.clock_hz * _LANES
        if slots.fp32 or slots.integer or slots.special:
            notes.append(
                f"fp32 peak: not in the machine description, {_LANES} lanes a compute unit "
                "assumed; `kernelcast calibrate --only instructions-fp32` measures it"
            )
    peaks = {
        "fp32": (slots.fp32, fp32),
        "fp64": (slots.fp64, _peak(rates, "fp64")),
        "int": (slots.integer, _peak(rates, "int32") / _OPERATIONS_OF_INT32),
        "special": (slots.special, _peak(rates, "native_special")),
    }
    stand_ins = {"fp64": fp32 / 2, "int": fp32, "special": fp32 / _SPECIAL_SHARE}
    times: dict[str, float] = {}
    for name, (amount, known) in peaks.items():
        if not amount:
            continue
        if not known:
            notes.append(f"peak of {name}: not in the machine description, taken from fp32")
        rate = known or stand_ins[name]
        lanes = demands.warps * rates.warp_width
        times[name] = (
            amount * lanes * plan.private_factor / (rate * _saturate(name, demands, rates, plan))
        )
    return times


def time_issue(
    demands: Demands, rates: GpuRates, plan: Schedule, arithmetic: Mapping[str, float]
) -> tuple[float, float]:
    """Compute the time in which schedulers issue instructions, in seconds.

    On NVIDIA's GPUs every instruction takes a slot, also a load, its address and a branch; AMD's
    issue those beside arithmetic.

    Parameters
    ----------
    arithmetic : mapping of str to float
        Times of its kinds, from `time_instructions`.

    Returns
    -------
    tuple of float
        For all instructions, and for those that the longest kind does not execute.
    """
    slots = _find_slots(demands)
    family = rates.architecture
    every = slots.fp32 + slots.fp64 + slots.integer + slots.special
    if demands.work is not None and family.issues_all_in_turn:
        every = demands.work.issued
    elif family.issues_all_in_turn:
        every += demands.executed.count(Kind.ADDRESS)
        every += demands.executed.count(Kind.BRANCH) / _UNROLLED
        every += sum(
            times * max(one.bytes / _LOADED_BYTES, 1.0)
            for one, times in demands.executed.memory.items()
            if one.space is not MemorySpace.PRIVATE
        )
    own = {"fp32": slots.fp32, "fp64": slots.fp64, "int": slots.integer, "special": slots.special}
    longest = own[max(arithmetic, key=arithmetic.__getitem__)] if arithmetic else 0.0
    lanes_per_s = family.issued_lanes * rates.compute_units * rates.clock_hz / plan.private_factor
    each_s = demands.warps * rates.warp_width / lanes_per_s
    if demands.work is not None:
        return every * each_s, min(every * each_s, max(arithmetic.values(), default=0.0))
    return every * each_s, (every - longest) * each_s


def _saturate(name: str, demands: Demands, rates: GpuRates, plan: Schedule) -> float:
    """Give the part of the peak that the resident work-items reach, mean of the phases."""
    ridge = _find_ridge(rates, {"int": "int32", "special": "native_special"}.get(name, name))
    if not ridge:
        return 1.0
    slowness = sum(
        part * max(ridge / (max(groups, 1.0) * demands.work_group_size), 1.0)
        for part, groups in plan.phases
    )
    return 1 / slowness


def _find_ridge(rates: GpuRates, name: str) -> float:
    """Give the work-items per unit that reach the peak: measured, else by Little's law."""
    facts = rates.instructions.get(name)
    if facts is None:
        return 0.0
    if facts.ridge_work_items is not None:
        return facts.ridge_work_items.value
    latency = facts.completion_latency_s.get(1)
    if latency is None or facts.peak_per_s is None:
        return 0.0
    return facts.peak_per_s.value / rates.compute_units * latency.value


def _peak(rates: GpuRates, name: str) -> float:
    facts = rates.instructions.get(name)
    return facts.peak_per_s.value if facts is not None and facts.peak_per_s is not None else 0.0


def _count_float(counts: OperationCounts, *, is_wide: bool) -> float:
    found: dict[Kind, float] = {}
    for one, times in counts.operations.items():
        if one.number is NumberClass.FLOAT and (one.bits == _WIDE) == is_wide:
            amount = times * one.lanes * _weigh_float(one)
            found[one.kind] = found.get(one.kind, 0.0) + amount
    contracted = max(found.get(Kind.ADD, 0.0), found.get(Kind.MULTIPLY, 0.0))
    rest = (Kind.FUSED, Kind.DIVIDE, Kind.SPECIAL, *_SIMPLE)
    return contracted + sum(found.get(kind, 0.0) for kind in rest)


def _weigh_float(operation: Operation) -> float:
    if operation.kind is Kind.DIVIDE:
        return _DIVIDE_SLOTS
    if operation.kind is Kind.SPECIAL:
        return _ROOT_SLOTS if operation.name in _ROOTS else _SPECIAL_SLOTS
    return 1.0


def _list_integer(counts: OperationCounts) -> Iterator[tuple[Operation, float]]:
    for one, times in counts.operations.items():
        of_integers = one.number is NumberClass.INTEGER and one.kind in (*_INTEGER, Kind.DIVIDE)
        # Widening an index is part of the address.
        if of_integers or (one.kind is Kind.CONVERT and one.number is NumberClass.FLOAT):
            yield one, times * one.lanes


def _count_unrolled(counts: OperationCounts) -> float:
    """Count the steps and comparisons that unrolled loops do not execute.

    No loop has more iterations than there are branches, comparisons or additions.
    """
    found = {Kind.ADD: 0.0, Kind.COMPARE: 0.0}
    for one, times in counts.operations.items():
        if one.number is NumberClass.INTEGER and one.kind in found:
            found[one.kind] += times * one.lanes
    iterations = min(counts.count(Kind.BRANCH), *found.values())
    return 2 * iterations * (1 - 1 / _UNROLLED)


def _weigh_integer(operation: Operation) -> float:
    slots = _INTEGER_DIVIDE_SLOTS if operation.kind is Kind.DIVIDE else 1.0
    return slots * (2 if operation.bits == _WIDE else 1)
