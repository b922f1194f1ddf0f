"""Address expressions and conditions as people read them."""

import re
from collections.abc import Iterable

from kernelcast.expressions import TRUE, Expr
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.records.operations import MemorySpace
from kernelcast.records.software_counters import RequestPattern
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
    """Shorten names of ids, sizes and iterations, and write "data" where data decides.

    Examples
    --------
    >>> shorten("4*n*global_id(1) + local_id(0) + 64*iteration(1:line 21)")
    '4*n*gid.y + lid.x + 64*it21'
    >>> shorten("unknown(bins)")
    'data in bins'
    """
    named = _ID.sub(lambda match: f"{_SHORT[match[1]]}.{_AXES[int(match[2])]}", text)
    return _DATA.sub(r"data in \1", _LOOP.sub(r"it\2", named))


def explain(texts: Iterable[str]) -> str:
    """Say what the short names in some texts mean.

    Examples
    --------
    >>> explain(["a[lid.x + 16*it21]", "b[lid.x]"])
    'lid: local id; it21: iteration of the loop in line 21, from 0'
    """
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
    index = _divide(access.offset_bytes, size)
    if index is None:
        return f"{buffer} + {shorten(str(access.offset_bytes))} B"
    return f"{buffer}[{shorten(str(index))}]"


def write_guard(access: MemoryAccess) -> str:
    """Write under which condition an access is executed; empty if always."""
    return "" if access.guard == TRUE else shorten(str(access.guard))


def describe_request(request: RequestPattern) -> str:
    """Say how the work-items of a warp touch memory, in a few words."""
    if request.space is MemorySpace.LOCAL:
        conflicts = request.bank_conflicts_per_request
        if not conflicts:
            return "no bank conflicts"
        return f"{format_count(conflicts)} bank conflicts/request"
    sectors = format_count(request.sectors_per_request)
    ideal = format_count(request.ideal_sectors_per_request)
    if request.is_coalesced:
        return f"{sectors} sectors/request"
    return f"{sectors} sectors/request where {ideal} would do"


def _divide(offset: Expr, size: int) -> Expr | None:
    """Convert an offset to elements, if it is a whole number of them."""
    if size < 1 or any(coefficient % size for _, coefficient in offset.terms):
        return None
    return Expr({factors: coefficient // size for factors, coefficient in offset.terms})
