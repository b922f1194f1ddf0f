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
    """Count floating-point operations of all widths, lanes apart, a fused one as two."""
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


def _list_numbers() -> list[tuple[NumberClass, int, str]]:
    """Give class, width and short name of each type of number."""
    return [
        (number, bits, f"{_SHORT[number]}{bits}")
        for number, widths in _WIDTHS.items()
        for bits in widths
    ]


def _describe_totals() -> list[Feature[SoftwareCounters]]:
    return [
        Feature(f"counters.{name}_operations_per_work_item",
                f"arithmetic on {name} of all kinds, per lane", _number_total(number, bits))
        for number, bits, name in _list_numbers()
    ]  # fmt: skip


def _describe_mix() -> list[Feature[SoftwareCounters]]:
    kinds = {NumberClass.FLOAT: _FLOAT_KINDS, NumberClass.INTEGER: _INTEGER_KINDS}
    return [
        Feature(f"counters.{name}_{kind}_per_work_item", f"{_TEXTS[kind]} of {name}, per lane",
                _number_kind(kind, number, bits))
        for number, bits, name in _list_numbers()
        for kind in kinds[number]
    ]  # fmt: skip


def _describe_others() -> list[Feature[SoftwareCounters]]:
    return [
        Feature(f"counters.{name}_per_work_item", text, _kind(kind),
                table_1="branches" if kind is Kind.BRANCH else "")
        for kind, (name, text) in _OTHERS.items()
    ]  # fmt: skip


def _describe_memory() -> list[Feature[SoftwareCounters]]:
    found: list[Feature[SoftwareCounters]] = []
    for space in _SPACES:
        paper = "shared loads/stores" if space is MemorySpace.LOCAL else ""
        for verb, is_store in (("load", False), ("store", True)):
            if space is MemorySpace.CONSTANT and is_store:
                continue
            past = "stored to" if is_store else "loaded from"
            found += [
                Feature(f"counters.{space}_{verb}s_per_work_item",
                        f"{verb}s, {space} memory; a vector is one",
                        _accesses(space, is_store=is_store), table_1=paper),
                Feature(f"counters.{space}_{verb}_bytes_per_work_item",
                        f"bytes {past} {space} memory", _bytes(space, is_store=is_store)),
            ]  # fmt: skip
    return found


_RATIOS: tuple[Feature[SoftwareCounters], ...] = (
    Feature("counters.lanes_per_operation",
            "lanes of an arithmetic operation, mean; absent where nothing is computed", _lanes),
    Feature("counters.special_operations_ratio", "share of special functions in arithmetic",
            _special_share),
    Feature("counters.flops_per_byte",
            "arithmetic intensity: floating-point operations over bytes loaded from and "
            "stored to global memory; absent where there are none", _intensity),
    Feature("counters.operations_per_byte",
            "the same with integer arithmetic, a fused operation as one", _integer_intensity),
)  # fmt: skip

_SUMS: tuple[Feature[SoftwareCounters], ...] = (
    Feature("counters.flops_per_work_item",
            "floating-point operations of all widths, per lane, a fused one as two",
            lambda s: count_flops(s.executed)),
)  # fmt: skip
_CONVERSIONS: tuple[Feature[SoftwareCounters], ...] = (
    Feature("counters.conversions_per_work_item", "conversions between types of numbers, per lane",
            lambda s: s.executed.count(Kind.CONVERT, per_lane=True)),
)  # fmt: skip

FEATURES = (
    *_SUMS, *_describe_totals(), *_describe_mix(), *_CONVERSIONS, *_describe_others(),
    *_describe_memory(), *_RATIOS,
)  # fmt: skip
"""In the order of the schema."""
