"""Counts what warps execute of PTX: blocks by following the control flow of some work-groups.

Of the code only what branches depend on is evaluated, for all work-items of a work-group at once:
ids, scalar arguments and what is computed of them. Warps that part run one side after the other,
that which stands first in the text first, as GPUs reconverge. What depends on data is not followed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kernelcast.compiling.compilation import Compiled
from kernelcast.compiling.signatures import find_ptx_body

Value = Any
"""Of a register: an int that all work-items have, an array with one for each, None if not known."""
_MOST_TURNS: Final = 1 << 40
_LABEL: Final = re.compile(r"^(\$[\w$]+):")
_LINE: Final = re.compile(r"^\s+(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*?);")
_REGISTER: Final = re.compile(r"%[a-zA-Z]\w*(?:\.[xyz])?")
_SIDE_EFFECTS: Final = frozenset({"st", "red", "bra", "ret", "exit", "bar", "barrier", "membar",
                                  "fence", "trap", "call", "prefetch"})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    local: tuple[int, int, int]
    groups: tuple[int, int, int]
    """Work-items of a work-group, and work-groups."""
    offset: tuple[int, int, int]
    items: tuple[int, int, int]
    """Global offset and size."""
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    parts: tuple[str, ...]
    """Its name and what follows it: ``("ld", "global", "v4", "f32")``."""
    written: tuple[str, ...]
    read: tuple[str, ...]
    operands: tuple[str, ...]
    """Texts, the result first where there is one."""

    @property
    def name(self) -> str:
        return self.parts[0]

    @property
    def bits(self) -> int:
        """Of its last type; 32 where none is named."""
        digits = re.sub(r"\D", "", self.parts[-1])
        return int(digits) if digits and self.parts[-1][0] in "bfsu" else 32

    @property
    def is_float(self) -> bool:
        return any(re.fullmatch(r"b?f(16|32|64)(x2)?", part) for part in self.parts[1:])


@dataclass(slots=True)
class _Block:
    instructions: list[Instruction] = field(default_factory=list)
    condition: tuple[str, bool] | None = None
    """Register of the branch at its end, and the value with which it is taken."""
    target: str = ""
    otherwise: str = ""
    """Labels; no label is the block behind, ``end`` the end of the kernel."""
    slice: list[Instruction] = field(default_factory=list)
    """What branches depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What warps of a launch execute, mean of some work-groups."""

    visits: tuple[float, ...]
    """How often a warp comes through each block."""
    blocks: tuple[tuple[Instruction, ...], ...]


def count_executed(
    compiled: Compiled, kernel: str, shape: Shape, arguments: Sequence[int | None], warp_width: int
) -> Executed | None:
    """Count how often warps come through blocks of PTX; None where data end a loop."""
    blocks, labels = _parse(compiled.text, kernel)
    total = np.zeros(len(blocks))
    count = shape.groups[0] * shape.groups[1] * shape.groups[2]
    chosen = sorted({count // 6, count // 2, 5 * count // 6})
    for group in chosen:
        visits = _WorkGroup(blocks, labels, shape, arguments, warp_width).run(group)
        if visits is None:
            return None
        total += visits
    return Executed(
        visits=tuple((total / len(chosen)).tolist()),
        blocks=tuple(tuple(one.instructions) for one in blocks),
    )


@lru_cache(maxsize=64)
def _parse(text: str, kernel: str) -> tuple[list[_Block], dict[str, int]]:
    """Split a kernel into blocks that end with branches; nobody may change them."""
    blocks, labels = [_Block()], dict[str, int]()
    is_open = True
    for line in find_ptx_body(text, kernel).splitlines():
        if match := _LABEL.match(line):
            if blocks[-1].instructions or not is_open:
                blocks.append(_Block())
            labels[match[1]], is_open = len(blocks) - 1, True
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        name, target = match[3].split(".")[0], match[4].strip()
        if name in {"bra", "ret", "exit", "trap"}:
            leads = target if name == "bra" else "end"
            block = blocks[-1]
            if not is_open:  # the branch behind a conditional one
                if not block.otherwise:
                    block.otherwise = leads
                continue
            if match[2]:
                block.condition = match[2], not match[1]
                block.instructions.append(
                    Instruction(parts=("bra",), written=(), read=(match[2],), operands=())
                )
            block.target, is_open = leads, False
            continue
        if not is_open or (name in {"bar", "barrier"} and blocks[-1].instructions):
            blocks.append(_Block())
            is_open = True
        blocks[-1].instructions.append(_read(match))
    # What conditions depend on is executed, and nothing else.
    needed = {one.condition[0] for one in blocks if one.condition}
    before = -1
    while before != len(needed):
        before = len(needed)
        for block in blocks:
            for one in block.instructions:
                if one.name not in {"ld", "atom"} and needed.intersection(one.written):
                    needed.update(one.read)
    for block in blocks:
        block.slice = [one for one in block.instructions if needed.intersection(one.written)]
    return blocks, labels


def _read(match: re.Match[str]) -> Instruction:
    parts = tuple(re.split(r"[.:]+", match[3]))
    operands = tuple(
        one.strip() for one in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", match[4])
        if one.strip()
    )  # fmt: skip
    has_result = parts[0] not in _SIDE_EFFECTS and bool(operands)
    written = tuple(_REGISTER.findall(operands[0])) if has_result else ()
    read = tuple(_REGISTER.findall(" ".join(operands[1 if has_result else 0 :])))
    if match[2]:
        read = (*read, match[2], *written)
    return Instruction(parts=parts, written=written, read=read, operands=operands)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is known when a turn of a loop begins, and what the turn before has compared."""

    registers: dict[str, Value]
    visits: npt.NDArray[np.float64]
    compared: list[tuple[int, int]]


class _WorkGroup:
    def __init__(
        self,
        blocks: Sequence[_Block],
        labels: Mapping[str, int],
        shape: Shape,
        arguments: Sequence[int | None],
        warp_width: int,
    ) -> None:
        self._blocks, self._labels, self._shape = blocks, labels, shape
        self._arguments, self._width = arguments, warp_width
        self._registers: dict[str, Value] = {}
        self._size = shape.local[0] * shape.local[1] * shape.local[2]
        self._warps = -(-self._size // warp_width)
        self._starts = {
            target for place, one in enumerate(blocks) if one.target or one.otherwise
            for target in (self._find(one.target, place), self._find(one.otherwise, place))
            if target <= place
        }  # fmt: skip
        self._turns: dict[int, _Turn] = {}
        self._compared: list[tuple[int, int]] = []

    def run(self, group: int) -> npt.NDArray[np.float64] | None:
        """Follow all work-items; give the visits of each block, per warp."""
        items = np.arange(self._size, dtype=np.int64)
        for axis, name in enumerate("xyz"):
            size, count = self._shape.local[axis], self._shape.groups[axis]
            self._registers[f"%tid.{name}"] = items % size if size > 1 else 0
            self._registers[f"%ntid.{name}"] = size
            self._registers[f"%ctaid.{name}"] = group % count
            self._registers[f"%nctaid.{name}"] = count
            items, group = items // size, group // count
        visits = np.zeros(len(self._blocks))
        waiting: dict[int, npt.NDArray[np.bool_] | None] = {0: None}
        barriers = {
            place for place, one in enumerate(self._blocks)
            if one.instructions and one.instructions[0].name in {"bar", "barrier"}
        }  # fmt: skip
        for _ in range(30_000):
            if not waiting:
                return visits / self._warps
            place = min(waiting, key=lambda one: (one in barriers, one))
            mask = waiting.pop(place)
            block = self._blocks[place]
            if place in self._starts and mask is None and not waiting:
                self._skip(place, visits)
            for one in block.slice:
                value = self._evaluate(one)
                name = one.written[0]
                if mask is not None and name in self._registers:
                    old = self._registers[name]
                    value = None if value is None or old is None else np.where(mask, value, old)
                self._registers[name] = value
            if mask is None:
                warps = self._warps
            else:
                whole = np.zeros(self._warps * self._width, dtype=np.bool_)
                whole[: self._size] = mask
                warps = int(whole.reshape(self._warps, self._width).any(axis=1).sum())
            visits[place] += warps
            ways = self._branch(place, block, mask)
            if ways is None:
                return None
            for target, part in ways:
                if target >= len(self._blocks):
                    continue
                known = waiting.get(target)
                if target in waiting and (known is None or part is None):
                    waiting[target] = None
                else:
                    waiting[target] = part if known is None or part is None else known | part
        return None

    def _branch(
        self, place: int, block: _Block, mask: npt.NDArray[np.bool_] | None
    ) -> list[tuple[int, npt.NDArray[np.bool_] | None]] | None:
        """Give the blocks that follow, and who goes there; None if data decide of a loop."""
        taken, other = self._find(block.target, place), self._find(block.otherwise, place)
        if block.condition is None:
            return [(taken if block.target else other, mask)]
        name, wanted = block.condition
        value = self._registers.get(name)
        if value is None:
            nearer, farther = sorted((taken, other))
            if nearer > place:
                return [(nearer, mask)]
            # Data that decide within a loop's body let it go on; data that end it are refused.
            goes_on = farther > nearer and any(
                nearer in (self._find(one.target, number), self._find(one.otherwise, number))
                for number, one in enumerate(self._blocks) if number >= farther and one.target
            )  # fmt: skip
            return [(farther, mask)] if goes_on else None
        if not isinstance(value, np.ndarray):
            return [(taken if bool(value) == wanted else other, mask)]
        own = value.astype(np.bool_) == wanted
        ways = []
        for target, part in ((taken, own), (other, ~own)):
            inside = part if mask is None else part & mask
            if inside.all():
                return [(target, None)]
            if inside.any():
                ways.append((target, inside))
        return ways

    def _find(self, label: str, place: int) -> int:
        if label == "end":
            return len(self._blocks)
        return self._labels[label] if label else place + 1

    def _skip(self, place: int, visits: npt.NDArray[np.float64]) -> None:
        """Go on to the last turns of an innermost loop, whose counters grow alike."""
        turn = _Turn(registers=dict(self._registers), visits=visits.copy(), compared=self._compared)
        self._compared = []
        before, self._turns = self._turns.get(place), {place: turn}
        if before is None:
            return
        steps: dict[str, int] = {}
        for name, new in turn.registers.items():
            old = before.registers.get(name)
            if isinstance(new, int) and isinstance(old, int):
                steps[name] = new - old
            elif new is not old:
                return
        pairs = list(zip(before.compared, turn.compared, strict=False))
        left = _MOST_TURNS if len(before.compared) == len(turn.compared) else 0
        for (low, high), (own, other) in pairs:
            ahead, step = other - own, (own - low) - (other - high)
            if step:
                # The last two turns are made one by one, whatever the comparison is.
                left = min(left, abs(ahead) // abs(step) - 2 if ahead * step > 0 else _MOST_TURNS)
        if not pairs or not 0 < left < _MOST_TURNS:
            return
        for name, step in steps.items():
            value = turn.registers[name]
            if step and isinstance(value, int):
                self._registers[name] = value + step * left
        visits += (turn.visits - before.visits) * left
        self._turns = {}

    def _evaluate(self, one: Instruction) -> Value:
        if one.name == "ld":
            text = one.operands[1]
            shape = self._shape
            if match := re.fullmatch(r"\[\w+_param_(\d+)\]", text):
                place = int(match[1])
                return self._arguments[place] if place < len(self._arguments) else None
            if match := re.fullmatch(r"\[kernelcast_launch(?:\+(\d+))?\]", text):
                field_, axis = divmod(int(match[1] or 0) // 4, 3)
                rows = ((0, 0, 0), shape.groups, shape.offset, shape.items)
                return rows[field_][axis] if field_ < len(rows) else shape.dimensions
            return None
        act = _OPERATIONS.get(one.name)
        if act is None or (one.is_float and one.name not in {"mov", "selp"}):
            return None
        values = [self._operand(text) for text in one.operands[1:]]
        if any(value is None for value in values):
            return None
        if one.name == "setp" and isinstance(values[0], int) and isinstance(values[1], int):
            self._compared.append((values[0], values[1]))
        return act(one, values)

    def _operand(self, text: str) -> Value:
        if text.startswith("%"):
            return self._registers.get(text)
        try:
            return int(text, 0)
        except ValueError:
            return {"true": 1, "false": 0}.get(text)


def _wrap(value: Value, bits: int, *, signed: bool = True) -> Value:
    """Keep so many bits of a number."""
    if value is None or (bits >= 64 and not isinstance(value, int)):
        return value
    low = value & ((1 << bits) - 1)
    if not signed:
        return low
    half = 1 << (bits - 1)
    wrapped: Value = (low ^ half) - half
    return wrapped


def _type(one: Instruction) -> tuple[int, bool]:
    kind = one.parts[-1]
    return (1, False) if kind == "pred" else (one.bits, kind[0] != "u")


def _arithmetic(act: Callable[..., Value]) -> Callable[[Instruction, list[Value]], Value]:
    def apply(one: Instruction, values: list[Value]) -> Value:
        bits, signed = _type(one)
        # Numbers of 64 bits have a sign, as in arrays.
        own = [_wrap(value, bits, signed=signed or bits >= 64) for value in values]
        if "wide" in one.parts:
            own[2:] = values[2:]
            return _wrap(act(*own), 2 * bits)
        if "hi" in one.parts:  # only Python's numbers hold twice the bits
            limit = -1 if signed else (1 << bits) - 1
            first, second = (np.asarray(value, dtype=object) & limit for value in own[:2])
            high = np.asarray((first * second >> bits) & (2**64 - 1), dtype=np.uint64)
            found = int(high) if high.ndim == 0 else high.astype(np.int64)
            return _wrap(found if len(own) == 2 else found + own[2], bits)
        return _wrap(act(*own), bits)

    return apply


def _choose(_: Instruction, values: list[Value]) -> Value:
    first, second, condition = values
    if isinstance(condition, np.ndarray):
        return np.where(condition.astype(np.bool_), first, second)
    return first if condition else second


def _convert(one: Instruction, values: list[Value]) -> Value:
    source = one.parts[-1]
    value = _wrap(values[0], one.bits, signed=source[0] != "u")
    target = one.parts[-2]
    return _wrap(value, int(re.sub(r"\D", "", target) or 64), signed=target[0] != "u")


_COMPARE: Final[Mapping[str, Callable[..., Value]]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b, "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}  # fmt: skip


def _set(one: Instruction, values: list[Value]) -> Value:
    bits, signed = _type(one)
    signed = signed and one.parts[1] not in {"lo", "ls", "hi", "hs"}
    first, second = (_wrap(value, bits, signed=signed) for value in values[:2])
    found = _COMPARE[one.parts[1]](first, second)
    if len(values) > 2:  # a condition that the comparison is combined with
        return found & values[2] if "and" in one.parts else found | values[2]
    return found


def _divide(a: Value, b: Value) -> Value:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        safe = np.where(np.equal(b, 0), 1, b)
        return np.where(np.less(a, 0) != np.less(safe, 0), -(np.abs(a) // np.abs(safe)),
                        np.abs(a) // np.abs(safe))  # fmt: skip
    if not b:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _negate(one: Instruction, values: list[Value]) -> Value:
    value = values[0]
    if one.parts[-1] == "pred":
        return ~value.astype(np.bool_) if isinstance(value, np.ndarray) else not value
    return _wrap(~value, one.bits)


def _extreme(pick: Callable[..., Value], arrays: Callable[..., Value]) -> Callable[..., Value]:
    return lambda a, b: arrays(a, b) if np.ndim(a) or np.ndim(b) else pick(a, b)


_MINIMUM: Final = _extreme(min, np.minimum)
_OPERATIONS: Final[Mapping[str, Callable[[Instruction, list[Value]], Value]]] = {
    "mov": lambda _, values: values[0], "cvta": lambda _, values: values[0],
    "add": _arithmetic(lambda a, b: a + b), "sub": _arithmetic(lambda a, b: a - b),
    "mul": _arithmetic(lambda a, b: a * b), "mad": _arithmetic(lambda a, b, c: a * b + c),
    "and": _arithmetic(lambda a, b: a & b), "or": _arithmetic(lambda a, b: a | b),
    "xor": _arithmetic(lambda a, b: a ^ b), "neg": _arithmetic(lambda a: -a),
    "abs": _arithmetic(abs), "shr": _arithmetic(lambda a, b: a >> _MINIMUM(b, 63)),
    "shl": _arithmetic(lambda a, b: a << _MINIMUM(b, 63)),
    "min": _arithmetic(_MINIMUM), "max": _arithmetic(_extreme(max, np.maximum)),
    "div": _arithmetic(_divide),
    "rem": _arithmetic(lambda a, b: None if (whole := _divide(a, b)) is None else a - whole * b),
    "not": _negate, "setp": _set, "selp": _choose, "cvt": _convert,
}  # fmt: skip
