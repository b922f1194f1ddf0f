"""What people are told of a kernel's source: addresses in words, and what each line executes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kernelcast.expressions import TRUE, Expr
from kernelcast.expressions.accesses import AddressPattern, MemoryAccess
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.launches.features import KernelFeatures
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts, OperationKind
from kernelcast.reports.numbers import format_count

_SHORT = {
    "global_id": "gid", "local_id": "lid", "group_id": "grp", "local_size": "lsz",
    "global_size": "gsz", "group_count": "ngr", "global_offset": "off",
}  # fmt: skip
_AXES = "xyz"
_ID = re.compile(rf"\b({'|'.join(_SHORT)})\(([012])\)")
_DATA = re.compile(r"\bunknown\(([^()]+)\)")
_LOOP = re.compile(r"\biteration\((\d+):line (\d+)\)")


def shorten(text: str) -> str:
    """Shorten names of ids, sizes and iterations, and write "data" where data decides."""
    named = _ID.sub(lambda match: f"{_SHORT[match[1]]}.{_AXES[int(match[2])]}", text)
    return _DATA.sub(r"data in \1", _LOOP.sub(r"it\2", named))


def explain(texts: Iterable[str]) -> str:
    """Say what the short names in some texts mean."""
    everything = " ".join(texts)
    used = [
        f"{short}: {name.replace('_', ' ')}"
        for name, short in _SHORT.items()
        if f"{short}." in everything
    ]
    loop = re.search(r"\bit(\d+)\b", everything)
    if loop:
        used.append(f"{loop[0]}: iteration of the loop in line {loop[1]}, from 0")
    return "; ".join(used)


def write_address(access: MemoryAccess, facts: KernelFacts) -> str:
    """Write where an access goes: as an element of its buffer where it is whole elements."""
    buffer = access.buffer or "?"
    if access.offset_bytes is None:
        sources = ", ".join(access.sources)
        if access.pattern == "indirect":
            return f"{buffer}[depends on {sources or 'data'}]"
        return f"{buffer}[{access.reason or 'unknown'}]"
    size = next(
        (parameter.element_bytes for parameter in facts.parameters if parameter.name == buffer),
        access.bytes,
    )
    offset = access.offset_bytes
    if size < 1 or any(coefficient % size for _, coefficient in offset.terms):
        return f"{buffer} + {shorten(str(offset))} B"
    index = Expr({factors: coefficient // size for factors, coefficient in offset.terms})
    return f"{buffer}[{shorten(str(index))}]"


def write_guard(access: MemoryAccess) -> str:
    """Write under which condition an access is executed; empty if always."""
    return "" if access.guard == TRUE else shorten(str(access.guard))


_K = OperationKind
ARITHMETIC = (
    _K.ADD, _K.MULTIPLY, _K.FUSED, _K.DIVIDE, _K.LOGIC, _K.COMPARE, _K.SELECT,
)  # fmt: skip
SPECIAL = (_K.SPECIAL, _K.SPECIAL_NATIVE)
_OTHERS = ((_K.BARRIER, "barrier"), (_K.ATOMIC, "atomic"), (_K.CALL, "call"), (_K.COPY, "copy"))
_WEIGHED = (*ARITHMETIC, *SPECIAL, _K.BARRIER, _K.ATOMIC, _K.BRANCH, _K.CALL, _K.COPY)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedLine:
    number: int
    code: str
    runs: float | None = None
    """Executions per work-item; None where it has no code of the kernel."""
    share: float = 0.0
    """Of all operations executed, from 0 to 1."""
    operations: tuple[str, ...] = ()
    """What one execution computes, such as ``2 fp32``."""
    memory: str = ""
    accesses: Mapping[str, str] = field(default_factory=dict)
    """Where that goes and when, such as ``load a[gid.x + 1], if gid.x < n, 4 sectors/request``, and
    what is known of the address; empty where it follows from ids and loops alone."""


def annotate(features: KernelFeatures) -> tuple[AnnotatedLine, ...]:
    """Put counts and addresses beside the lines of a source; measured ones where there are."""
    counters = features.best_counters
    counts = counters.block_counts
    facts = {one.line: one for one in features.facts.lines}
    weights = {line: weigh(one.executed(counts)) for line, one in facts.items()}
    total = sum(weights.values()) or 1.0
    requests = {pattern.site: pattern for pattern in counters.patterns}
    accesses: dict[int, dict[str, str]] = {}
    for access in features.facts.accesses:
        request, told = requests.get(access.site), ""
        if request is not None and request.space is MemorySpace.LOCAL:
            conflicts = request.bank_conflicts_per_request
            ways = f"{format_count(conflicts)} bank conflicts/request"
            told = ways if conflicts else "no bank conflicts"
        elif request is not None:
            told = f"{format_count(request.sectors_per_request)} sectors/request"
            if not request.is_coalesced:
                told += f" where {format_count(request.ideal_sectors_per_request)} would do"
        is_usual = access.pattern is AddressPattern.QUASI_AFFINE
        pattern, guard = "" if is_usual else str(access.pattern), write_guard(access)
        parts = (
            f"{access.kind} {write_address(access, features.facts)}",
            f"if {guard}" if guard else "", pattern, told,
        )  # fmt: skip
        accesses.setdefault(access.line, {})[", ".join(filter(None, parts))] = pattern
    found = []
    source = features.problem.kernel.source.expandtabs(4).rstrip()
    for number, code in enumerate(source.split("\n"), start=1):
        one = facts.get(number)
        line = AnnotatedLine(number=number, code=code, accesses=accesses.get(number, {}))
        if one is not None:
            moved = [
                f"{format_count(times)} {text}"
                for is_store, text in ((False, "ld"), (True, "st"))
                if (times := sum(one.once.count_memory(space, is_store=is_store)
                                 for space in MemorySpace))
            ]  # fmt: skip
            line = replace(
                line,
                runs=one.executions(counts),
                share=weights[number] / total,
                operations=tuple(summarise_operations(one.once)),
                memory="  ".join(moved),
            )
        found.append(line)
    return tuple(found)


def summarise_operations(counts: OperationCounts) -> list[str]:
    words = {
        f"fp{bits}": counts.count(*ARITHMETIC, number=NumberClass.FLOAT, bits=bits, per_lane=True)
        for bits in (16, 32, 64)
    }
    words["special"] = counts.count(*SPECIAL, per_lane=True)
    words["int"] = counts.count(*ARITHMETIC, number=NumberClass.INTEGER, per_lane=True)
    found = [f"{format_count(times)} {text}" for text, times in words.items() if times]
    for kind, text in _OTHERS:
        if times := counts.count(kind):
            found.append(text if times == 1 else f"{format_count(times)} {text}")
    return found


def weigh(counts: OperationCounts) -> float:
    """Add up what costs time: arithmetic, branches, loads and stores, not laying out addresses."""
    memory = sum(counts.memory.values())
    return counts.count(*_WEIGHED, per_lane=True) + memory
