"""Tells which addresses pass through 32 bits, so that compilers do not see neighbours side by side.

Ids have 64 bits, and so have addresses. Between them indices are often `int` or `uint`, and what is
cut down to 32 bits and widened again may wrap: Intel's compiler then no longer knows that the next
work-item's address is the next one, and gathers. A sum of `int` with another number of 32 bits must
not wrap, and is followed, unless a loop's counter takes that number away from it: it is widened on
its own. Seen in the machine code of small kernels (with version 0.2).
"""

from collections.abc import Iterable, Mapping
from enum import IntFlag, auto
from functools import cached_property, reduce
from typing import Final

from kernelcast.compiling.ir import Instruction, Operand
from kernelcast.features.ir.operations import bits_of, name_called
from kernelcast.features.ir.scalars import Evaluator


class Form(IntFlag):
    """What an address is made of: none of these if only of constants."""

    LOCAL_ID = auto()
    GLOBAL_ID = auto()
    MIXED = auto()  # more than constants were added
    NUMBER = auto()  # it holds a number that has 32 bits by itself
    COUNTER = auto()  # it changes in a loop that is not written out
    # How the first id reaches it: the greatest counts, so forms are compared with these.
    WHOLE = auto()  # with all its bits
    SUM = auto()  # cut, and added to another number of 32 bits
    CUT = auto()  # cut, but for constants that are added
    LOST = auto()  # without a sign, or cut after sums of 64 bits


_NONE: Final = Form(0)
_IDS: Final = {"get_global_id": Form.GLOBAL_ID, "get_local_id": Form.LOCAL_ID}
_ORDERS: Final = ("slt", "sgt", "sle", "sge", "ult", "ugt", "ule", "uge")
_SUMS: Final = ("add", "sub")


def find_narrowed(forms: Mapping[int, Form], looping: Iterable[int]) -> frozenset[int]:
    """Give the sites whose addresses compilers do not see side by side."""
    whole = 0
    for form in forms.values():
        if Form.WHOLE <= form < Form.SUM or (form >= Form.CUT and not form & Form.COUNTER):
            whole |= form & (Form.LOCAL_ID | Form.GLOBAL_ID)
    inside = frozenset(looping)
    return frozenset(
        site for site, form in forms.items()
        if form >= Form.CUT
        # Where an id is needed whole as well, sums of its lower half are no longer followed.
        or (form >= Form.SUM and form & whole and (form & Form.COUNTER or site not in inside))
    )  # fmt: skip


class Forms:
    def __init__(self, code: Evaluator) -> None:
        self._code = code
        self._known: dict[str, Form] = {}

    def combine(self, operands: Iterable[Operand]) -> Form:
        """Give the form of what some operands are added up to."""
        return reduce(_add, map(self._of, operands), _NONE)

    def _of(self, operand: Operand) -> Form:
        kind, value = operand
        if not value.startswith("%"):
            return _NONE
        instruction = self._code.instructions.get(value)
        if instruction is None:
            return Form.NUMBER if bits_of(kind) else _NONE
        if value not in self._known:
            self._known[value] = _NONE  # what it is set to may be made of itself
            form = self._find(instruction)
            is_kept = (
                Form.CUT <= form < Form.LOST and instruction.type == "i64"
                and instruction.opcode in ("sext", "mul", *_SUMS)
                and len(self._code.flow.users[value]) > 1 and not self._has_lower_bounds
            )  # fmt: skip
            self._known[value] = _reach(form, Form.WHOLE) if is_kept else form
        return self._known[value]

    @cached_property
    def _has_lower_bounds(self) -> bool:
        """Whether cut ids are compared with constants: what is not negative has no sign to keep."""
        return any(
            one.opcode == "icmp" and one.detail in _ORDERS
            and any(not value.startswith("%") for _, value in one.operands)
            and any(Form.CUT <= self._known.get(value, 0) < Form.LOST for _, value in one.operands)
            for one in self._code.flow.list_instructions()
        )  # fmt: skip

    def _find(self, one: Instruction) -> Form:
        if one.opcode == "call":
            name = name_called(one)
            if name in _IDS and one.operands[0][1] == "0":
                return Form.WHOLE | _IDS[name]
            return Form.MIXED if name.startswith("get_") else self.combine(one.operands)
        if one.opcode in ("load", "atomicrmw", "cmpxchg"):
            return Form.NUMBER
        if one.opcode == "getelementptr":
            found = self._of(one.operands[0])
            for place, operand in enumerate(one.operands[1:]):
                index = self._of(operand)
                # The size of an array that is declared bounds its index.
                if place and Form.CUT <= index < Form.LOST and not index & Form.MIXED:
                    index = _reach(index, _NONE)
                found = _add(found, index)
            return found
        if one.opcode == "phi":
            form, loop = self.combine(one.operands), self._code.flow.loop_of.get(one.block)
            if loop is None or loop.header != one.block:
                return form
            if form < Form.WHOLE:
                count = self._code.loop_facts(loop).trip_count
                is_written_out = count is not None and count.constant_value is not None
                return form & ~Form.COUNTER if is_written_out else form | Form.COUNTER
            is_cut = Form.CUT <= form < Form.LOST and bits_of(one.type)
            return _reach(form, Form.SUM) if is_cut else form
        if one.opcode == "select":
            return self.combine(one.operands[1:])
        if one.opcode in ("trunc", "zext") and bits_of(one.type) and (
            bits_of(one.operands[0][0]) > 1
        ):  # fmt: skip
            form = self._of(one.operands[0])
            if form < Form.WHOLE:
                return form
            is_cut = one.opcode == "trunc" and form < Form.SUM and not form & Form.MIXED
            return _reach(form, Form.CUT if is_cut else Form.LOST)
        if len(one.operands) == 2 and bits_of(one.type):
            return self._calculate(one)
        return self.combine(one.operands)

    def _calculate(self, one: Instruction) -> Form:
        forms = map(self._of, one.operands)
        left, right = sorted(forms, key=lambda form: form.bit_length() * (form >= Form.WHOLE),
                             reverse=True)  # fmt: skip
        is_sum = one.opcode in _SUMS
        if is_sum and not right:
            return left
        both = left | right | Form.MIXED
        numbers = [int(value) for _, value in one.operands if value.lstrip("-").isdigit()]
        is_shift = one.opcode == "shl" or (
            one.opcode == "mul" and any(each > 0 and not each & (each - 1) for each in numbers)
        )
        if both < Form.WHOLE and not is_sum and is_shift:
            return both | Form.NUMBER  # what is shifted does not meet what is added
        if bits_of(one.type) != 32 or not Form.WHOLE <= both < Form.LOST:
            return both
        if "nsw" not in one.flags and one.opcode in (*_SUMS, "mul"):
            return _reach(both, Form.LOST)
        if both >= Form.CUT and right and not right & Form.COUNTER:
            return _reach(both, Form.SUM if right & Form.NUMBER else Form.LOST)
        return both


def _add(one: Form, two: Form) -> Form:
    return one | two | (Form.MIXED if one and two else _NONE)


def _reach(form: Form, way: Form) -> Form:
    """Give the form of what the first id reaches in another way."""
    return Form(form % Form.WHOLE) | way
