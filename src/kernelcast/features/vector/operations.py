"""Features of what a work-item executes: operations by kind and width, memory by space."""

from collections.abc import Callable

from kernelcast.features.vector.definitions import Feature, divide
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts
from kernelcast.records.operations import OperationKind as Kind
from kernelcast.records.software_counters import SoftwareCounters

ARITHMETIC = (
    Kind.ADD, Kind.MULTIPLY, Kind.FUSED, Kind.DIVIDE, Kind.LOGIC, Kind.COMPARE, Kind.SELECT,
    Kind.SPECIAL, Kind.SPECIAL_NATIVE,
)  # fmt: skip
"""Kinds that compute with numbers; conversions and addresses are counted apart."""

_FLOAT_KINDS = tuple(kind for kind in ARITHMETIC if kind is not Kind.LOGIC)
_INTEGER_KINDS = tuple(kind for kind in ARITHMETIC if kind is not Kind.SPECIAL_NATIVE)
_WIDTHS = {NumberClass.FLOAT: (16, 32, 64), NumberClass.INTEGER: (8, 16, 32, 64)}
_SHORT = {NumberClass.FLOAT: "fp", NumberClass.INTEGER: "int"}
_TEXTS = {
    Kind.ADD: "sums and differences", Kind.MULTIPLY: "products",
    Kind.FUSED: "fused products and sums, each one operation",
    Kind.DIVIDE: "quotients and remainders", Kind.LOGIC: "bitwise operations and shifts",
    Kind.COMPARE: "comparisons", Kind.SELECT: "choices, minima and maxima",
    Kind.SPECIAL: "precise special functions", Kind.SPECIAL_NATIVE: "native special functions",
}  # fmt: skip
_OTHERS = {
    Kind.ADDRESS: ("address", "sums on pointers, subscripts included"),
    Kind.BRANCH: ("branches", "conditional branches"),
    Kind.JUMP: ("jumps", "unconditional branches, as laid out without optimisation"),
    Kind.BARRIER: ("barriers", "barriers"),
    Kind.ATOMIC: ("atomics", "atomic operations"),
    Kind.CALL: ("calls", "calls of functions whose work is not known"),
    Kind.COPY: ("copies", "copies between global and local memory by a whole work-group"),
}  # fmt: skip
_SPACES = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL, MemorySpace.PRIVATE)

Formula = Callable[[SoftwareCounters], float | None]


def count_flops(counts: OperationCounts) -> float:
    """Count floating-point operations of all widths, lanes apart, a fused one as two.

    Examples
    --------
    >>> from kernelcast.records.operations import Operation
    >>> fused = Operation(kind=Kind.FUSED, number=NumberClass.FLOAT, bits=32, lanes=4)
    >>> count_flops(OperationCounts(operations={fused: 1}, memory={}))
    8
    """
    every = counts.count(*_FLOAT_KINDS, number=NumberClass.FLOAT, per_lane=True)
    return every + counts.count(Kind.FUSED, number=NumberClass.FLOAT, per_lane=True)


def count_global_bytes(counts: OperationCounts) -> float:
    """Add up bytes loaded from and stored to global memory."""
    return sum(counts.memory_bytes(MemorySpace.GLOBAL, is_store=one) for one in (False, True))


def _number_total(number: NumberClass, bits: int | None = None) -> Formula:
    return lambda s: s.executed.count(*ARITHMETIC, number=number, bits=bits, per_lane=True)


def _number_kind(kind: Kind, number: NumberClass, bits: int) -> Formula:
    return lambda s: s.executed.count(kind, number=number, bits=bits, per_lane=True)


def _kind(kind: Kind) -> Formula:
    return lambda s: s.executed.count(kind)


def _accesses(space: MemorySpace, *, is_store: bool) -> Formula:
    return lambda s: s.executed.count_memory(space, is_store=is_store)


def _bytes(space: MemorySpace, *, is_store: bool) -> Formula:
    return lambda s: s.executed.memory_bytes(space, is_store=is_store)


def _conversions(source: SoftwareCounters) -> float:
    return source.executed.count(Kind.CONVERT, per_lane=True)


def _lanes(source: SoftwareCounters) -> float | None:
    counts = source.executed
    return divide(counts.count(*ARITHMETIC, per_lane=True), counts.count(*ARITHMETIC))


def _intensity(source: SoftwareCounters) -> float | None:
    return divide(count_flops(source.executed), count_global_bytes(source.executed))


def _integer_intensity(source: SoftwareCounters) -> float | None:
    every = source.executed.count(*ARITHMETIC, per_lane=True)
    return divide(every, count_global_bytes(source.executed))


def _special_share(source: SoftwareCounters) -> float | None:
    counts = source.executed
    special = counts.count(Kind.SPECIAL, Kind.SPECIAL_NATIVE, per_lane=True)
    return divide(special, counts.count(*ARITHMETIC, per_lane=True))


def _describe_totals() -> list[Feature[SoftwareCounters]]:
    totals = [
        Feature(
            name=f"counters.{_SHORT[number]}{bits}_operations_per_work_item",
            meaning=f"arithmetic on {_SHORT[number]}{bits} of all kinds, per lane",
            compute=_number_total(number, bits),
        )
        for number, widths in _WIDTHS.items()
        for bits in widths
    ]
    flops: Feature[SoftwareCounters] = Feature(
        name="counters.flops_per_work_item",
        meaning="floating-point operations of all widths, per lane, a fused one as two",
        compute=lambda s: count_flops(s.executed),
    )
    return [flops, *totals]


def _describe_mix() -> list[Feature[SoftwareCounters]]:
    kinds = {NumberClass.FLOAT: _FLOAT_KINDS, NumberClass.INTEGER: _INTEGER_KINDS}
    return [
        Feature(
            name=f"counters.{_SHORT[number]}{bits}_{kind}_per_work_item",
            meaning=f"{_TEXTS[kind]} of {_SHORT[number]}{bits}, per lane",
            compute=_number_kind(kind, number, bits),
        )
        for number, widths in _WIDTHS.items()
        for bits in widths
        for kind in kinds[number]
    ]


def _describe_others() -> list[Feature[SoftwareCounters]]:
    conversions: Feature[SoftwareCounters] = Feature(
        name="counters.conversions_per_work_item",
        meaning="conversions between types of numbers, per lane",
        compute=_conversions,
    )
    return [conversions, *(
        Feature(name=f"counters.{name}_per_work_item", meaning=text, compute=_kind(kind),
                table_1="branches" if kind is Kind.BRANCH else "")
        for kind, (name, text) in _OTHERS.items()
    )]  # fmt: skip


def _describe_memory() -> list[Feature[SoftwareCounters]]:
    found: list[Feature[SoftwareCounters]] = []
    for space in _SPACES:
        for verb, is_store in (("load", False), ("store", True)):
            if space is MemorySpace.CONSTANT and is_store:
                continue
            past = "stored to" if is_store else "loaded from"
            found += [
                Feature(
                    name=f"counters.{space}_{verb}s_per_work_item",
                    meaning=f"{verb}s, {space} memory; a vector is one",
                    compute=_accesses(space, is_store=is_store),
                    table_1="shared loads/stores" if space is MemorySpace.LOCAL else "",
                ),
                Feature(
                    name=f"counters.{space}_{verb}_bytes_per_work_item",
                    meaning=f"bytes {past} {space} memory",
                    compute=_bytes(space, is_store=is_store),
                ),
            ]
    return found


_RATIOS: tuple[Feature[SoftwareCounters], ...] = (
    Feature(
        name="counters.lanes_per_operation",
        meaning="lanes of an arithmetic operation, mean; absent where nothing is computed",
        compute=_lanes,
    ),
    Feature(
        name="counters.special_operations_ratio",
        meaning="share of special functions in arithmetic",
        compute=_special_share,
    ),
    Feature(
        name="counters.flops_per_byte",
        meaning="arithmetic intensity: floating-point operations over bytes loaded from and "
        "stored to global memory; absent where there are none",
        compute=_intensity,
    ),
    Feature(
        name="counters.operations_per_byte",
        meaning="the same with integer arithmetic, a fused operation as one",
        compute=_integer_intensity,
    ),
)

FEATURES = (
    *_describe_totals(), *_describe_mix(), *_describe_others(), *_describe_memory(), *_RATIOS,
)  # fmt: skip
"""In the order of the schema."""
