"""Tells which addresses pass through 32 bits, so that compilers do not see neighbours side by side.

Ids have 64 bits, and so have addresses. Between them indices are often `int` or `uint`, and what is
cut down to 32 bits and widened again may wrap: Intel's compiler then no longer knows that the next
work-item's address is the next one, and gathers. A sum of `int` with another number of 32 bits must
not wrap, and is followed, unless a loop's counter takes that number away from it: it is widened on
its own. Seen in the machine code of small kernels (with version 0.2).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Final

from kernelcast.expressions.accesses import LoopFacts
from kernelcast.features.ir.module import Instruction, Operand
from kernelcast.features.ir.scalars import bits_of, name_called
from kernelcast.features.ir.slices import Code

_IDS: Final = frozenset(("get_global_id", "get_local_id"))
_ORDERS: Final = ("slt", "sgt", "sle", "sge", "ult", "ugt", "ule", "uge")
_SUMS: Final = ("add", "sub")


class _Way(IntEnum):
    """How the first id reaches a number; the later, the worse."""

    NONE = 0
    WHOLE = 1
    """With all its bits."""
    SUM = 2
    """Cut, and added to another number of 32 bits."""
    CUT = 3
    """Cut, but for constants that are added."""
    LOST = 4
    """Without a sign, or cut after sums of 64 bits."""


@dataclass(frozen=True, slots=True)
class Form:
    """What an address is made of."""

    way: _Way = _Way.NONE
    ids: frozenset[str] = frozenset()
    is_plain: bool = True
    """Whether only constants were added to the id."""
    has_number: bool = False
    """Whether it holds a number that has 32 bits by itself."""
    has_counter: bool = False
    """Whether it changes in a loop that is not written out."""


_CONSTANT, _OTHER_ID, _NUMBER = Form(), Form(is_plain=False), Form(has_number=True)


def find_narrowed(forms: Mapping[int, Form], looping: Iterable[int]) -> frozenset[int]:
    """Give the sites whose addresses compilers do not see side by side."""
    whole = {
        name
        for form in forms.values()
        if form.way is _Way.WHOLE or (form.way >= _Way.CUT and not form.has_counter)
        for name in form.ids
    }
    inside = frozenset(looping)
    return frozenset(
        site
        for site, form in forms.items()
        if form.way >= _Way.CUT
        # Where an id is needed whole as well, sums of its lower half are no longer followed.
        or (form.way is _Way.SUM and form.ids & whole and (form.has_counter or site not in inside))
    )


class Forms:
    """Finds the forms of a kernel's values."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._known: dict[str, Form] = {}

    def combine(self, operands: Iterable[Operand]) -> Form:
        """Give the form of what some operands are added up to."""
        found = _CONSTANT
        for operand in operands:
            found = _add(found, self._of(operand))
        return found

    def _of(self, operand: Operand) -> Form:
        kind, value = operand
        if not value.startswith("%"):
            return _CONSTANT
        instruction = self._code.evaluator.instructions.get(value)
        if instruction is None:
            return _NUMBER if bits_of(kind) else _CONSTANT
        if value not in self._known:
            self._known[value] = _CONSTANT  # what it is set to may be made of itself
            form = self._find(instruction)
            is_kept = (
                form.way is _Way.CUT and instruction.type == "i64"
                and instruction.opcode in ("sext", "mul", *_SUMS)
                and len(self._code.flow.users[value]) > 1 and not self._has_lower_bounds
            )  # fmt: skip
            self._known[value] = replace(form, way=_Way.WHOLE) if is_kept else form
        return self._known[value]

    @cached_property
    def _has_lower_bounds(self) -> bool:
        """Whether cut ids are compared with constants: what is not negative has no sign to keep."""
        return any(
            one.opcode == "icmp" and one.detail in _ORDERS
            and any(not value.startswith("%") for _, value in one.operands)
            and any(self._known.get(value, _CONSTANT).way is _Way.CUT for _, value in one.operands)
            for one in self._code.flow.list_instructions()
        )  # fmt: skip

    def _find(self, one: Instruction) -> Form:
        if one.opcode == "call":
            name = name_called(one)
            if name in _IDS and one.operands[0][1] == "0":
                return Form(_Way.WHOLE, frozenset((name,)))
            return _OTHER_ID if name.startswith("get_") else self.combine(one.operands)
        if one.opcode in ("load", "atomicrmw", "cmpxchg"):
            return _NUMBER
        if one.opcode == "getelementptr":
            found = self._of(one.operands[0])
            for place, operand in enumerate(one.operands[1:]):
                index = self._of(operand)
                # The size of an array that is declared bounds its index.
                if place and index.way is _Way.CUT and index.is_plain:
                    index = replace(index, way=_Way.NONE)
                found = _add(found, index)
            return found
        if one.opcode == "phi":
            return self._join(one)
        if one.opcode == "select":
            return self.combine(one.operands[1:])
        if one.opcode == "trunc" and bits_of(one.type):
            form = self._of(one.operands[0])
            if form.way is _Way.NONE:
                return form
            is_cut = form.is_plain and form.way is _Way.WHOLE
            return replace(form, way=_Way.CUT if is_cut else _Way.LOST)
        if one.opcode == "zext" and bits_of(one.operands[0][0]) > 1:
            form = self._of(one.operands[0])
            return form if form.way is _Way.NONE else replace(form, way=_Way.LOST)
        if len(one.operands) == 2 and bits_of(one.type):
            return self._calculate(one)
        return self.combine(one.operands)

    def _calculate(self, one: Instruction) -> Form:
        left, right = (self._of(operand) for operand in one.operands)
        if right.way > left.way:
            left, right = right, left
        is_sum = one.opcode in _SUMS
        if is_sum and right == _CONSTANT:
            return left
        both = replace(_add(left, right), is_plain=False)
        numbers = [int(value) for _, value in one.operands if value.lstrip("-").isdigit()]
        is_shift = one.opcode == "shl" or (
            one.opcode == "mul" and any(each > 0 and not each & (each - 1) for each in numbers)
        )
        if both.way is _Way.NONE and not is_sum and is_shift:
            return replace(both, has_number=True)  # what is shifted does not meet what is added
        if bits_of(one.type) != 32 or both.way in (_Way.NONE, _Way.LOST):
            return both
        if "nsw" not in one.flags and one.opcode in (*_SUMS, "mul"):
            return replace(both, way=_Way.LOST)
        if both.way is _Way.CUT and right != _CONSTANT and not right.has_counter:
            return replace(both, way=_Way.SUM if right.has_number else _Way.LOST)
        return both

    def _join(self, phi: Instruction) -> Form:
        found = self.combine(phi.operands)
        loop = self._code.flow.loop_of.get(phi.block)
        if loop is None or loop.header != phi.block:
            return found
        if found.way is _Way.NONE:
            facts: LoopFacts = self._code.evaluator.loop_facts(loop)
            count = facts.trip_count
            is_written_out = count is not None and count.constant_value is not None
            return replace(found, has_counter=not is_written_out)
        is_number = bool(bits_of(phi.type))
        return replace(found, way=_Way.SUM) if found.way is _Way.CUT and is_number else found


def _add(one: Form, two: Form) -> Form:
    is_plain = (one == _CONSTANT or two == _CONSTANT) and one.is_plain and two.is_plain
    return Form(
        max(one.way, two.way), one.ids | two.ids, is_plain,
        one.has_number or two.has_number, one.has_counter or two.has_counter,
    )  # fmt: skip
