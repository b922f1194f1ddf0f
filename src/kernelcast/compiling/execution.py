"""Counts what warps execute of PTX: blocks by following the control flow of some work-groups.

Of the code only what branches depend on is evaluated, for all work-items of a work-group at once:
ids, scalar arguments and what is computed of them. Warps that part run one side after the other,
that which stands first in the text first, as GPUs reconverge. What depends on data is not followed.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.compiling.compilation import Compiled
from kernelcast.records.ndrange import NDRange

Value: TypeAlias = npt.NDArray[Any] | None
"""Of a register, 64 bits or a truth value: one that all work-items have, or one for each; None if
it is not known."""
Visits: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
"""The work-items that go a way."""
_WARP_WIDTH: Final = 32
_MOST_TURNS: Final = 1 << 40
_LINE: Final = re.compile(r"(\$[\w$]+):|\s+(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*?);")
_REGISTER: Final = re.compile(r"%[a-zA-Z]\w*(?:\.[xyz])?")
_ENDS: Final = frozenset({"bra", "ret", "exit", "trap"})
_BARRIERS: Final = frozenset({"bar", "barrier"})
_SIDE_EFFECTS: Final = _ENDS | _BARRIERS | {"st", "red", "membar", "fence", "call", "prefetch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    parts: tuple[str, ...]
    """Its name and what follows it: ``("ld", "global", "v4", "f32")``."""
    written: tuple[str, ...]
    read: tuple[str, ...]
    operands: tuple[str, ...]
    """Texts, the result first where there is one."""
    condition: tuple[str, bool] | None = None
    """A register, and the value with which it is executed."""

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


def find_ptx_body(text: str, kernel: str) -> str:
    """Find the code of a kernel: it ends at a brace at a line's start; those of calls do not."""
    entry = re.search(rf"\.entry {re.escape(kernel)}\([^)]*\).*?^\{{\n(.*?)^\}}", text,
                      re.MULTILINE | re.DOTALL)  # fmt: skip
    return entry[1] if entry else ""


def read_code(body: str) -> list[Instruction | str]:
    """Read instructions of PTX, and the labels between them."""
    found: list[Instruction | str] = []
    for match in map(_LINE.match, body.splitlines()):
        if match is None:
            continue
        label, negation, register, name, rest = match.groups()
        if label:
            found.append(label)
            continue
        parts = tuple(re.split(r"[.:]+", name))
        operands = tuple(
            one.strip() for one in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", rest)
            if one.strip()
        )  # fmt: skip
        has_result = parts[0] not in _SIDE_EFFECTS and bool(operands)
        written = tuple(_REGISTER.findall(operands[0])) if has_result else ()
        read = tuple(_REGISTER.findall(" ".join(operands[has_result:])))
        if register:
            read = (*read, register, *written)
        found.append(Instruction(
            parts=parts, written=written, read=read, operands=operands,
            condition=(register, not negation) if register else None,
        ))  # fmt: skip
    return found


@dataclass(slots=True)
class _Block:
    instructions: list[Instruction] = field(default_factory=list)
    condition: tuple[str, bool] | None = None
    labels: list[str] = field(default_factory=list)
    """Where it leads to by its branches; ``end`` is the end of the kernel."""
    ways: tuple[int, ...] = ()
    """The block that follows, or where its condition leads to and where its contrary does."""
    slice: list[Instruction] = field(default_factory=list)
    """What branches depend on."""


Executed: TypeAlias = Sequence[tuple[float, Sequence[Instruction]]]
"""How often a warp comes through blocks, mean of some work-groups, and what these execute."""


def count_executed(
    compiled: Compiled, kernel: str, ndrange: NDRange, arguments: Sequence[int | None]
) -> Executed | None:
    """Count how often warps come through blocks of PTX; None where data end a loop."""
    blocks = _split(compiled.text, kernel)
    total = np.zeros(len(blocks))
    count = ndrange.work_group_count
    chosen = sorted({count // 6, count // 2, 5 * count // 6})
    for group in chosen:
        with np.errstate(all="ignore"):  # numbers wrap around
            visits = _WorkGroup(blocks, ndrange, arguments).run(group)
        if visits is None:
            return None
        total += visits
    instructions = (one.instructions for one in blocks)
    return [*zip((total / len(chosen)).tolist(), instructions, strict=True)]


@lru_cache(maxsize=64)
def _split(text: str, kernel: str) -> list[_Block]:
    """Split a kernel into blocks that end with branches; nobody may change them."""
    blocks, places = [_Block()], dict[str, int]()
    is_open = True
    for one in read_code(find_ptx_body(text, kernel)):
        block = blocks[-1]
        if isinstance(one, str):
            if block.instructions or not is_open:
                blocks.append(_Block())
            places[one], is_open = len(blocks) - 1, True
        elif one.name in _ENDS:
            block.labels.append(one.operands[0] if one.name == "bra" else "end")
            if is_open and one.condition:
                block.condition = one.condition
                block.instructions.append(one)
            is_open = False
        else:
            if not is_open or (one.name in _BARRIERS and block.instructions):
                blocks.append(_Block())
                is_open = True
            blocks[-1].instructions.append(one)
    places["end"] = len(blocks)
    for place, block in enumerate(blocks):
        ways = [*(places[label] for label in block.labels), place + 1]
        block.ways = tuple(ways[: 2 if block.condition else 1])
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
    return blocks


class _WorkGroup:
    def __init__(
        self, blocks: Sequence[_Block], ndrange: NDRange, arguments: Sequence[int | None]
    ) -> None:
        self._blocks, self._arguments = blocks, arguments
        self._local, self._groups, items = (
            (*sizes, 1, 1)[:3]
            for sizes in (ndrange.known_local_size, ndrange.group_counts, ndrange.global_size)
        )
        offset = (*ndrange.global_offset, 0, 0)[:3]
        # The variable that tells of the launch; the first work-group is its first.
        self._words = (0, 0, 0, *self._groups, *offset, *items, ndrange.dimensions)
        self._registers: dict[str, Value] = {}
        self._size = ndrange.work_group_size
        self._starts = {
            way for place, one in enumerate(blocks) for way in one.ways if way <= place
        }  # fmt: skip
        # A loop, what is known when a turn of it begins, and what the turn before has compared.
        self._turn: tuple[int, dict[str, Value], Visits, list[tuple[int, int]]] | None = None
        self._compared: list[tuple[int, int]] = []

    def run(self, group: int) -> Visits | None:
        """Follow all work-items; give the visits of each block, per warp."""
        items = np.arange(self._size, dtype=np.int64)
        for name, size, count in zip("xyz", self._local, self._groups, strict=True):
            self._registers[f"%tid.{name}"] = items % size if size > 1 else _fill(0)
            self._registers[f"%ntid.{name}"] = _fill(size)
            self._registers[f"%ctaid.{name}"] = _fill(group % count)
            self._registers[f"%nctaid.{name}"] = _fill(count)
            items, group = items // size, group // count
        visits = np.zeros(len(self._blocks))
        firsts = np.arange(0, self._size, _WARP_WIDTH)
        # Who waits before which block.
        waiting = {0: np.ones(self._size, dtype=np.bool_)}
        barriers = {
            place for place, one in enumerate(self._blocks)
            if one.instructions and one.instructions[0].name in _BARRIERS
        }  # fmt: skip
        for _ in range(30_000):
            if not waiting:
                return visits / len(firsts)
            place = min(waiting, key=lambda one: (one in barriers, one))
            mask, block = waiting.pop(place), self._blocks[place]
            is_whole = mask.all()
            if place in self._starts and is_whole and not waiting:
                self._skip(place, visits)
            for one in block.slice:
                value = self._evaluate(one)
                name = one.written[0]
                if not is_whole and name in self._registers:
                    old = self._registers[name]
                    value = None if value is None or old is None else np.where(mask, value, old)
                self._registers[name] = value
            visits[place] += np.logical_or.reduceat(mask, firsts).sum()
            ways = self._branch(place, block, mask)
            if ways is None:
                return None
            for way, part in ways:
                if way < len(self._blocks):
                    waiting[way] = waiting.get(way, part) | part
        return None

    def _branch(self, place: int, block: _Block, mask: Mask) -> list[tuple[int, Mask]] | None:
        """Give the blocks that follow, and who goes there; None if data decide of a loop."""
        if block.condition is None:
            return [(block.ways[0], mask)]
        name, wanted = block.condition
        value = self._registers.get(name)
        if value is not None:
            parts = mask & (value == wanted), mask & (value != wanted)
            return [(way, part) for way, part in zip(block.ways, parts, strict=True) if part.any()]
        nearer, farther = sorted(block.ways)
        if nearer > place:
            return [(nearer, mask)]
        # Data that decide within a loop's body let it go on; data that end it are refused.
        goes_on = any(nearer in one.ways for one in self._blocks[farther:])
        return [(farther, mask)] if farther > nearer and goes_on else None

    def _skip(self, place: int, visits: Visits) -> None:
        """Go on to the last turns of an innermost loop, whose counters grow alike."""
        before, self._turn = self._turn, (
            place, dict(self._registers), visits.copy(), self._compared
        )  # fmt: skip
        compared, self._compared = self._compared, []
        if before is None or before[0] != place:
            return
        _, old_registers, old_visits, old_compared = before
        steps: dict[str, int] = {}
        for name, new in self._registers.items():
            old = old_registers.get(name)
            if new is not None and old is not None and new.size == old.size == 1:
                steps[name] = int(new.item()) - int(old.item())
            elif new is not old:
                return
        pairs = list(zip(old_compared, compared, strict=False))
        left = _MOST_TURNS if len(old_compared) == len(compared) else 0
        for (low, high), (own, other) in pairs:
            ahead, step = other - own, (own - low) - (other - high)
            if step:
                # The last two turns are made one by one, whatever the comparison is.
                left = min(left, abs(ahead) // abs(step) - 2 if ahead * step > 0 else _MOST_TURNS)
        if not pairs or not 0 < left < _MOST_TURNS:
            return
        for name, step in steps.items():
            value = self._registers[name]
            if step and value is not None and value.dtype != np.bool_:
                self._registers[name] = _fill(int(value.item()) + step * left)
        visits += (visits - old_visits) * left
        self._turn = None

    def _evaluate(self, one: Instruction) -> Value:
        if one.name == "ld":
            if match := re.fullmatch(r"\[\w+_param_(\d+)\]", one.operands[1]):
                place = int(match[1])
                number = self._arguments[place] if place < len(self._arguments) else None
                return None if number is None else _fill(number)
            match = re.fullmatch(r"\[kernelcast_launch(?:\+(\d+))?\]", one.operands[1])
            return _fill(self._words[int(match[1] or 0) // 4]) if match else None
        types = [_TYPES[part] for part in one.parts if part in _TYPES]
        values = [value for value in map(self._operand, one.operands[1:]) if value is not None]
        if one.is_float or not types or len(values) < len(one.operands) - 1:
            return None
        # Of a conversion the type of the result comes first.
        result, own = types[0], types[-1]
        wide = np.dtype(f"{own.kind}{2 * own.itemsize}") if "wide" in one.parts else own
        numbers = [value.astype(own).astype(wide) for value in values[:2]]
        numbers += [value.astype(wide) for value in values[2:]]
        if one.name == "setp":
            if all(value.size == 1 for value in numbers):
                self._compared.append((int(numbers[0].item()), int(numbers[1].item())))
            truth = _COMPARISONS[one.parts[1]](*numbers[:2])
            for value in values[2:]:  # a condition that the comparison is combined with
                truth = truth & value if "and" in one.parts else truth | value
            return truth
        if "hi" in one.parts:  # only Python's numbers hold twice the bits
            first, second, *added = (value.astype(object) for value in numbers)
            high = sum(added, (first * second) >> (8 * own.itemsize))
            return np.asarray(high & _ALL_BITS, dtype=np.uint64).astype(own).astype(np.int64)
        act = _OPERATIONS.get(one.name)
        found: Value = None if act is None else act(*numbers)
        if found is None or own == np.bool_:
            return found
        return found.astype(wide if wide != own else result).astype(np.int64)

    def _operand(self, text: str) -> Value:
        if text.startswith("%"):
            return self._registers.get(text)
        try:
            return _fill(int(text, 0))
        except ValueError:
            return {"true": _fill(1), "false": _fill(0)}.get(text)


_ALL_BITS: Final = (1 << 64) - 1
_TYPES: Final = {"pred": np.dtype(np.bool_)} | {
    f"{letter}{bits}": np.dtype(f"{'i' if letter == 's' else 'u'}{bits // 8}")
    for letter in "bsu" for bits in (8, 16, 32, 64)
}  # fmt: skip


def _fill(number: int) -> npt.NDArray[np.int64]:
    """Make the value of a register that all work-items have."""
    return np.array([number & _ALL_BITS], dtype=np.uint64).astype(np.int64)


_COMPARISONS: Final[Mapping[str, Callable[..., npt.NDArray[np.bool_]]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip
_OPERATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **dict.fromkeys(("mov", "cvta", "cvt"), lambda a: a), "add": operator.add,
    "sub": operator.sub, "mul": operator.mul, "mad": lambda a, b, c: a * b + c,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.invert,
    "neg": operator.neg, "abs": operator.abs, "shl": operator.lshift, "shr": operator.rshift,
    "min": np.minimum, "max": np.maximum, "rem": np.fmod,
    "div": lambda a, b: (a - np.fmod(a, b)) // b, "selp": lambda a, b, c: np.where(c, a, b),
}  # fmt: skip
