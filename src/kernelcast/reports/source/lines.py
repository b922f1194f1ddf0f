"""What each line of a kernel's source executes, of all that the kernel executes."""

from dataclasses import dataclass

from kernelcast.expressions.accesses import AddressPattern, MemoryAccess
from kernelcast.launches.features import KernelFeatures
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    OperationCounts,
    OperationKind,
)
from kernelcast.records.software_counters import RequestPattern
from kernelcast.reports.numbers import format_count
from kernelcast.reports.source.expressions import describe_request, write_address, write_guard

_TAB = 4
_K = OperationKind
ARITHMETIC = (
    _K.ADD, _K.MULTIPLY, _K.FUSED, _K.DIVIDE, _K.LOGIC, _K.COMPARE, _K.SELECT,
)  # fmt: skip
SPECIAL = (_K.SPECIAL, _K.SPECIAL_NATIVE)
_OTHERS = ((_K.BARRIER, "barrier"), (_K.ATOMIC, "atomic"), (_K.CALL, "call"), (_K.COPY, "copy"))
_WEIGHED = (*ARITHMETIC, *SPECIAL, _K.BARRIER, _K.ATOMIC, _K.BRANCH, _K.CALL, _K.COPY)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineAccess:
    """An access of a line in words."""

    kind: str
    """``load``, ``store`` or ``atomic``."""
    address: str
    """Where it goes, such as ``a[gid.x + 1]``."""
    guard: str
    """When it is executed; empty if always."""
    pattern: str
    """What is known of the address; empty where it follows from ids and loops alone."""
    requests: str
    """How a warp touches memory; empty if nobody knows."""

    @property
    def text(self) -> str:
        """All of it."""
        condition = f"if {self.guard}" if self.guard else ""
        parts = (f"{self.kind} {self.address}", condition, self.pattern, self.requests)
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedLine:
    """A line of the source with what it executes."""

    number: int
    """From 1."""
    code: str
    """Its text."""
    runs: float | None = None
    """Executions per work-item; None where it has no code of the kernel."""
    share: float = 0.0
    """Of all operations executed, from 0 to 1."""
    operations: tuple[tuple[str, str], ...] = ()
    """What one execution computes: class and text, such as ``("float", "2 fp32")``."""
    memory: str = ""
    """What one execution loads and stores."""
    accesses: tuple[LineAccess, ...] = ()
    """Where that goes, each place once."""


def expand_source(features: KernelFeatures) -> str:
    """Format the source as it is shown."""
    return features.problem.kernel.source.expandtabs(_TAB).rstrip()


def annotate(features: KernelFeatures) -> tuple[AnnotatedLine, ...]:
    """Put counts and addresses beside the lines of a source; measured ones where there are."""
    counters = features.best_counters
    counts = counters.block_counts
    facts = {one.line: one for one in features.facts.lines}
    weights = {line: weigh(one.executed(counts)) for line, one in facts.items()}
    total = sum(weights.values()) or 1.0
    requests = {pattern.site: pattern for pattern in counters.patterns}
    accesses: dict[int, dict[LineAccess, None]] = {}
    for access in features.facts.accesses:
        described = _describe(access, features, requests.get(access.site))
        accesses.setdefault(access.line, {})[described] = None
    found = []
    for number, code in enumerate(expand_source(features).split("\n"), start=1):
        places, one = tuple(accesses.get(number, ())), facts.get(number)
        if one is None:
            found.append(AnnotatedLine(number=number, code=code, accesses=places))
            continue
        found.append(
            AnnotatedLine(
                number=number,
                code=code,
                runs=one.executions(counts),
                share=weights[number] / total,
                operations=tuple(summarise_operations(one.once)),
                memory=summarise_memory(one.once),
                accesses=places,
            )
        )
    return tuple(found)


def _describe(
    access: MemoryAccess, features: KernelFeatures, request: RequestPattern | None
) -> LineAccess:
    is_usual = access.pattern is AddressPattern.QUASI_AFFINE
    return LineAccess(
        kind=str(access.kind),
        address=write_address(access, features.facts),
        guard=write_guard(access),
        pattern="" if is_usual else str(access.pattern),
        requests="" if request is None else describe_request(request),
    )


def summarise_operations(counts: OperationCounts) -> list[tuple[str, str]]:
    """Summarise what is computed, in a few words each: class and text.

    Examples
    --------
    >>> from kernelcast.records.operations import Operation
    >>> add = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32, lanes=4)
    >>> summarise_operations(OperationCounts(operations={add: 2}, memory={}))
    [('float', '8 fp32')]
    """
    words = []
    for bits in (16, 32, 64):
        times = counts.count(*ARITHMETIC, number=NumberClass.FLOAT, bits=bits, per_lane=True)
        words.append(("float", times, f"fp{bits}"))
    words.append(("special", counts.count(*SPECIAL, per_lane=True), "special"))
    integers = counts.count(*ARITHMETIC, number=NumberClass.INTEGER, per_lane=True)
    words.append(("integer", integers, "int"))
    found = [(kind, f"{format_count(times)} {text}") for kind, times, text in words if times]
    for kind, text in _OTHERS:
        times = counts.count(kind)
        if times:
            found.append(("other", text if times == 1 else f"{format_count(times)} {text}"))
    return found


def summarise_memory(counts: OperationCounts) -> str:
    """Summarise how much is loaded and stored, in a few words.

    Examples
    --------
    >>> summarise_memory(OperationCounts(operations={}, memory={}))
    ''
    """
    words = []
    for is_store, text in ((False, "ld"), (True, "st")):
        times = sum(counts.count_memory(space, is_store=is_store) for space in MemorySpace)
        if times:
            words.append(f"{format_count(times)} {text}")
    return "  ".join(words)


def weigh(counts: OperationCounts) -> float:
    """Add up what costs time: arithmetic, branches, loads and stores, not laying out addresses."""
    memory = sum(counts.memory.values())
    return counts.count(*_WEIGHED, per_lane=True) + memory
