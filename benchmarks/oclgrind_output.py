"""What Oclgrind executed, sorted as kernelcast counts: reads the text of ``--inst-counts``."""

import re
from collections import Counter
from dataclasses import dataclass, field

from kernelcast.features.blocks.builtins import find_parts, is_atomic
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    OperationCounts,
    OperationKind,
)

SPACES = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL)
# Kinds that must agree to the last one; those within 5 %; those shown only.
CONTROL = {OperationKind.ATOMIC, OperationKind.BARRIER}
ARITHMETIC = {
    OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.FUSED, OperationKind.DIVIDE,
    OperationKind.LOGIC, OperationKind.COMPARE, OperationKind.SELECT, OperationKind.SPECIAL,
    OperationKind.SPECIAL_NATIVE,
}  # fmt: skip
SHOWN = {OperationKind.CONVERT, OperationKind.ADDRESS}

_F, _I = NumberClass.FLOAT, NumberClass.INTEGER
_KINDS = {
    OperationKind.ADD: "add sub fadd fsub fneg",
    OperationKind.MULTIPLY: "mul fmul",
    OperationKind.DIVIDE: "udiv sdiv urem srem fdiv frem",
    OperationKind.LOGIC: "shl lshr ashr and or xor",
    OperationKind.COMPARE: "icmp fcmp",
    OperationKind.SELECT: "select",
    OperationKind.CONVERT: "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp",
    OperationKind.ADDRESS: "getelementptr",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_LINE = re.compile(r"\s*(?P<count>\d+) - (?P<name>.+?)(?: \((?P<bytes>\d+) bytes\))?")
_CALL = re.compile(r"call _Z(?P<length>\d+)(?P<rest>\w+)\(\)")
_LANES = re.compile(r"Dv(\d+)_")
_FLOAT_TYPE = re.compile(r"(?:Dv\d+_)?(?:PU3AS\d+V?)?[fd]|(?:Dv\d+_)?Dh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What a launch executed, under the names that both sides use.

    Parameters
    ----------
    exact : Counter of str
        Loads, stores and their bytes by address space, branches, atomics, barriers.
    arithmetic : Counter of str
        Operations by kind and class of numbers; a vector operation is one.
    shown : Counter of str
        Conversions and address arithmetic.
    """

    exact: Counter[str] = field(default_factory=Counter)
    arithmetic: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)

    def add(self, kind: OperationKind, number: NumberClass, times: float) -> None:
        """Add operations of one kind."""
        if kind in CONTROL:
            self.exact[f"{kind}s"] += round(times)
        elif kind in (OperationKind.BRANCH, OperationKind.JUMP):
            self.exact["branches"] += round(times)
        elif kind in ARITHMETIC | SHOWN:
            group = self.arithmetic if kind in ARITHMETIC else self.shown
            has_class = kind in ARITHMETIC and kind is not OperationKind.SELECT
            name = f"{number if number is _F else _I} {kind}" if has_class else kind.value
            group[name] += round(times)

    def add_memory(self, space: str, what: str, times: float, moved_bytes: float) -> None:
        """Add loads or stores of one address space; private memory is not compared."""
        if space in SPACES and times:
            self.exact[f"{what}s {space}"] += round(times)
            self.exact[f"{what} bytes {space}"] += round(moved_bytes)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Give it as it is written."""
        groups = {"exact": self.exact, "arithmetic": self.arithmetic, "shown": self.shown}
        return {name: dict(sorted(group.items())) for name, group in groups.items()}


def sort_own(counts: OperationCounts) -> Executed:
    """Sort what kernelcast counted."""
    executed = Executed()
    for operation, times in counts.operations.items():
        executed.add(operation.kind, operation.number, times)
    for access, times in counts.memory.items():
        what = "store" if access.is_store else "load"
        executed.add_memory(access.space, what, times, times * access.bytes)
    return executed


def sort_oclgrind(text: str) -> tuple[Executed, Counter[str]]:
    """Sort what Oclgrind printed; also give the plain instructions."""
    executed, plain = Executed(), Counter[str]()
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            times, name = int(match["count"]), match["name"]
            plain[name] += times
            _sort_instruction(executed, name, times, int(match["bytes"] or 0))
    return executed, plain


def _sort_instruction(executed: Executed, name: str, times: int, moved_bytes: int) -> None:
    what, _, rest = name.partition(" ")
    if what in ("load", "store"):
        executed.add_memory(rest, what, times, moved_bytes)
    elif name in ("br", "switch"):
        executed.add(OperationKind.BRANCH, NumberClass.NONE, times)
    elif name.startswith("call llvm.fmuladd."):
        executed.add(OperationKind.MULTIPLY, _F, times)
        executed.add(OperationKind.ADD, _F, times)
    elif name in _KIND_OF:
        executed.add(_KIND_OF[name], _F if name.startswith("f") else _I, times)
    elif what == "call":
        _sort_call(executed, name, times)


def _sort_call(executed: Executed, name: str, times: int) -> None:
    """Take a call of a builtin for the operations that kernelcast says it is."""
    match = _CALL.fullmatch(name)
    if match is None:
        return
    length = int(match["length"])
    called, types = match["rest"][:length], match["rest"][length:]
    if is_atomic(called):
        executed.add(OperationKind.ATOMIC, NumberClass.NONE, times)
        return
    lanes = max((int(one) for one in _LANES.findall(types)), default=1)
    number = _F if _FLOAT_TYPE.match(types) else _I
    for kind, parts, _ in find_parts(called, lanes) or ():
        executed.add(kind, number, parts * times)
