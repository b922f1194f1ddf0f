"""Finds what became of a loop in a compiler's assembly: x86-64, as gcc and clang write it.

A loop of the source becomes several: one over whole vectors, perhaps unrolled, and others for what
is left before and behind. How far addresses move in one pass tells how many iterations it executes.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

_LABEL = re.compile(r"^([.\w$]+):")
_FUNCTION_END = re.compile(r"^\s*\.(?:size|cfi_endproc)\b")
_INSTRUCTION = re.compile(r"^\s+([a-z][\w.]*)\s*(.*)$")
_MEMORY = re.compile(
    r"(?<![\w%])(-?[\w.+@-]*)\((%\w+)?\s*(?:,\s*(%\w+)\s*(?:,\s*(\d+))?)?\)"
)  # fmt: skip
_COMMENT = re.compile(r"\s*#.*$")
_COMMA = re.compile(r",(?![^(]*\))")
"""Outside brackets."""
_PARTS = {
    part: f"r{name}" for name in ("ax", "bx", "cx", "dx")
    for part in (f"e{name}", name, f"{name[0]}l", f"{name[0]}h")
} | {
    part: f"r{name}" for name in ("si", "di", "bp", "sp") for part in (f"e{name}", name, f"{name}l")
}  # fmt: skip
"""Registers by the names of their parts; those with numbers are named by a rule."""
_READ_ONLY = ("cmp", "test", "prefetch", "kortest", "ktest", "vcomis", "vucomis", "comis", "ucomis",
              "j", "call", "nop")  # fmt: skip

_ARITHMETIC = re.compile(r"v?(fn?m(?:add|sub)\d*|add|sub|mul|div|sqrt|min|max)([ps])([sd])$")
_LANES = {"x": 1, "y": 2, "z": 4}
"""Of 16 bytes, by the first letter of a vector register."""

Value = tuple[str, int] | None
"""A register as it was when the pass began, and what was added; None if nobody knows."""
State = dict[str, Value]
"""What registers hold; those that are left out hold what they held when the pass began."""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    name: str
    operands: tuple[str, ...]

    @property
    def target(self) -> str | None:
        return self.operands[0] if self.name.startswith("j") and self.operands else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyLoop:
    body: str
    """Its lines, labels included, as they follow one another in the function."""
    advances: frozenset[int]
    """Bytes by which addresses move in one pass; those that stay are left out."""
    jumps: int
    """Conditional jumps beside those that close the loop."""
    calls: tuple[str, ...]
    label: str
    """Where each pass begins."""
    flops: int
    """Floating-point operations of a pass, of all its sides; a fused multiply-add is two."""

    def count_iterations(self, strides: Collection[int]) -> int | None:
        """Count the iterations of the source's loop in one pass; None if it is another loop."""
        wanted = {one for one in strides if one}
        for advance in sorted(self.advances, key=abs):
            for stride in wanted:
                passes, rest = divmod(advance, stride)
                if not rest and passes > 0 and {passes * one for one in wanted} <= self.advances:
                    return passes
        return None


def list_inner_loops(assembly: str, function: str) -> list[AssemblyLoop]:
    """List the innermost loops of a function; empty if there is none."""
    lines: list[_Line] = []
    labels: dict[int, list[str]] = {}
    is_inside = False
    for raw in assembly.splitlines():
        text = _COMMENT.sub("", raw)
        label = _LABEL.match(text)
        if label:
            name = label[1]
            if not is_inside:
                is_inside = name == function
            else:
                labels.setdefault(len(lines), []).append(name)
            continue
        if is_inside and _FUNCTION_END.match(text):
            break
        found = _INSTRUCTION.match(text)
        if is_inside and found and not found[1].startswith("."):
            operands = map(str.strip, _COMMA.split(found[2]))
            lines.append(_Line(text.strip(), found[1], tuple(filter(None, operands))))
    places = {name: place for place, names in labels.items() for name in names}
    after: list[list[int]] = []
    for place, line in enumerate(lines, 1):
        goes_on = place < len(lines) and not line.name.startswith("ret")
        nexts = [place] if goes_on and line.name not in ("jmp", "jmpq") else []
        target = places.get(line.target or "", len(lines))
        after.append([*nexts, target] if target < len(lines) else nexts)
    loops = _find_loops(after, set(labels))
    return [
        _describe(lines, labels, after, header, body)
        for header, body in loops.items()
        if not any(other in body for other in loops if other != header)
    ]


def _find_loops(after: Sequence[Sequence[int]], headers: set[int]) -> dict[int, set[int]]:
    """Find the instructions of each loop by its first one.

    A way leads back to a place if everything that leads there, the place itself apart, can only be
    come to through it: not from the beginning of the function.
    """
    before: dict[int, list[int]] = {place: [] for place in range(len(after))}
    for place, nexts in enumerate(after):
        for one in nexts:
            before[one].append(place)
    loops: dict[int, set[int]] = {}
    for header in headers & before.keys():
        for latch in before[header]:
            body, open_ = {header}, [latch]
            while open_:
                one = open_.pop()
                if one not in body:
                    body.add(one)
                    open_.extend(before[one])
            if header == 0 or 0 not in body:
                loops.setdefault(header, set()).update(body)
    return loops


def _describe(
    lines: Sequence[_Line],
    labels: Mapping[int, Sequence[str]],
    after: Sequence[Sequence[int]],
    header: int,
    body: set[int],
) -> AssemblyLoop:
    # Follow registers through one pass, along all ways that it may take.
    arriving: dict[int, State] = {header: {}}
    ends: list[State] = []
    open_ = [header]
    while open_:
        place = min(open_)
        open_.remove(place)
        line, state = lines[place], arriving[place]
        target = line.operands[-1] if line.operands else ""
        if target.startswith("%") and not line.name.startswith(_READ_ONLY):
            register = _whole(target)
            state = {**state, register: _compute(line, state, _read(state, register))}
        for one in after[place]:
            if one == header:
                ends.append(state)
            elif one in body:
                joined = _join([arriving[one], state]) if one in arriving else state
                if joined != arriving.get(one):
                    arriving[one] = joined
                    open_.append(one)
    end = _join(ends)
    advances: set[int] = set()
    calls: list[str] = []
    jumps = 0
    text: list[str] = []
    for place in sorted(body):
        line = lines[place]
        text.extend(f"{label}:" for label in labels.get(place, ()))
        text.append(f"\t{line.text}")
        if line.name.startswith("call"):
            calls.append(line.operands[0].removesuffix("@PLT"))
        stays = [one for one in after[place] if one in body and one != header]
        jumps += len(stays) > 1 and line.target is not None
        if not line.name.startswith(("lea", "nop")):
            moved = {_find_advance(one, arriving[place], end) for one in line.operands}
            advances |= {one for one in moved if one}
    return AssemblyLoop(
        body="\n".join(text) + "\n",
        advances=frozenset(advances),
        jumps=jumps,
        calls=tuple(dict.fromkeys(calls)),
        label=labels[header][0],
        flops=sum(_count_flops(lines[place]) for place in body),
    )


def _count_flops(line: _Line) -> int:
    found = _ARITHMETIC.match(line.name)
    if not found:
        return 0
    lanes = 1
    if found[2] == "p":
        lanes = _LANES[line.operands[-1][1]] * (4 if found[3] == "s" else 2)
    return lanes * (2 if found[1].startswith("f") else 1)


def _find_advance(operand: str, state: State, end: State) -> int | None:
    """Find by how much an operand's address moves in a pass; None if it is none, or not known."""
    found = _MEMORY.search(operand)
    if found is None:
        return None
    total = 0
    for register, factor in ((found[2], 1), (found[3], int(found[4] or 1))):
        if register is None:
            continue
        held = _read(state, _whole(register))
        last = _read(end, held[0]) if held else None
        if held is None or last is None or last[0] != held[0]:
            return None
        total += factor * last[1]
    return total


def _join(states: Sequence[State]) -> State:
    found: State = {}
    for name in {name for one in states for name in one}:
        values = {_read(one, name) for one in states}
        found[name] = values.pop() if len(values) == 1 else None
    return found


def _read(state: State, register: str) -> Value:
    return state.get(register, (register, 0))


def _compute(line: _Line, state: State, before: Value) -> Value:
    name = re.sub("^(add|sub|inc|dec|mov|lea)[lqwb]$", r"\1", line.name)
    first = line.operands[0]
    if name in ("inc", "dec"):
        return before and (before[0], before[1] + (1 if name == "inc" else -1))
    if name in ("add", "sub") and re.fullmatch(r"\$-?(?:0x)?[\da-f]+", first):
        number = int(first[1:], 0)
        return before and (before[0], before[1] + (number if name == "add" else -number))
    if name == "mov" and first.startswith("%"):
        return _read(state, _whole(first))
    found = _MEMORY.fullmatch(first) if name == "lea" else None
    if found and found[2] and found[3] is None and re.fullmatch(r"-?\d*", found[1]):
        source = _read(state, _whole(found[2]))
        return source and (source[0], source[1] + int(found[1] or 0))
    return None


def _whole(register: str) -> str:
    """Name the 64-bit register that a register is a part of."""
    name = register.lstrip("%").split("{")[0]
    return _PARTS.get(name) or re.sub(r"^(r\d+)[dwb]$", r"\1", name)
