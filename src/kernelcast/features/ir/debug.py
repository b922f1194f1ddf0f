"""What the compiler notes of a source: lines, types of parameters, names of members."""

import math
import re
from dataclasses import dataclass, replace
from typing import Final

from kernelcast.compiling.ir import Instruction, Module

_FIELD: Final = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|([^,()]+))')
_LOCATION: Final = re.compile(
    r"!DILocation\((?:line: (\d+))?(?:, column: (\d+))?(?:, )?scope: !(\d+)"
    r"(?:, inlinedAt: !(\d+))?"
)
_REFERENCE: Final = re.compile(r"!(\d+)")
_UNSIGNED: Final = frozenset(("DW_ATE_unsigned", "DW_ATE_unsigned_char", "DW_ATE_boolean"))
_SIGNED: Final = frozenset(("DW_ATE_signed", "DW_ATE_signed_char"))
_BEGINNING: Final = re.compile(r"[A-Za-z_(*]")
_EXPRESSION: Final = re.compile(r"[\w.]+|->|\s+(?=\[|->|\.\w)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    line: int
    """0 in an included file."""
    column: int
    function: str
    at: int
    """Number of the call that it was inlined at; 0 for none."""
    is_main: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeNote:
    name: str = ""
    bits: int = 0
    is_unsigned: bool = False
    is_signed: bool = False
    lanes: int = 1
    is_const: bool = False
    is_volatile: bool = False
    is_restrict: bool = False
    target: int | None = None
    """Note of what a pointer points to."""
    members: tuple[tuple[str, int, int], ...] = ()
    """Name, offset in bytes and note of the type of each."""
    element: int = 0
    """Note of an array's elements."""


class DebugNotes:
    def __init__(self, module: Module, file_name: str) -> None:
        self._module = module
        self._file_names = (file_name, f"./{file_name}")
        self._fields: dict[int, dict[str, str]] = {}
        self._places: dict[int, Place] = {}
        self._scopes: dict[int, tuple[str, bool]] = {}
        self._types: dict[int, TypeNote] = {}

    def fields(self, number: int) -> dict[str, str]:
        found = self._fields.get(number)
        if found is None:
            body = self._module.notes.get(number, "")
            found = {"": body.partition("(")[0]}
            for name, text, other in _FIELD.findall(body):
                found[name] = text or other.strip()
            self._fields[number] = found
        return found

    def reference(self, number: int, name: str) -> int:
        """Give the number of the note that a field names; -1 for none."""
        match = _REFERENCE.fullmatch(self.fields(number).get(name, ""))
        return int(match[1]) if match else -1

    def numbers(self, number: int) -> list[int]:
        body = self._module.notes.get(number, "")
        return [int(one) for one in _REFERENCE.findall(body)] if body.startswith("!{") else []

    def place(self, number: int) -> Place | None:
        if number not in self._places:
            match = _LOCATION.match(self._module.notes.get(number, ""))
            if match is None:
                return None
            function, is_main = self._read_scope(int(match[3]))
            self._places[number] = Place(
                line=int(match[1] or 0) if is_main else 0, column=int(match[2] or 0),
                function=function, at=int(match[4] or 0), is_main=is_main,
            )  # fmt: skip
        return self._places[number]

    def _read_scope(self, number: int) -> tuple[str, bool]:
        if number not in self._scopes:
            fields, outer = self.fields(number), self.reference(number, "scope")
            function, is_main = fields.get("name", ""), False
            if fields[""] != "!DISubprogram":
                function, is_main = self._read_scope(outer) if outer >= 0 else ("", False)
            if (file := self.reference(number, "file")) >= 0:
                is_main = self.fields(file).get("filename", "") in self._file_names
            self._scopes[number] = (function, is_main)
        return self._scopes[number]

    def is_written_in(self, one: Instruction, latch: Instruction) -> bool:
        """Tell whether an instruction stands in the source of the loop that a jump closes."""
        lines = self.loop_lines(latch)
        place, around = self.place(one.note), self.place(latch.note)
        if lines is None or around is None:
            return False
        if place is None or not place.line:
            return one.opcode == "phi"
        while place is not None and place.at != around.at and place.at:
            place = self.place(place.at)
        return place is not None and place.at == around.at and lines[0] <= place.line <= lines[1]

    def loop_lines(self, latch: Instruction) -> tuple[int, int] | None:
        places = [self.place(one) for one in self.numbers(latch.loop_note)]
        lines = [one.line for one in places if one is not None]
        return (lines[0], lines[-1]) if len(lines) > 1 else None

    def type_of(self, number: int) -> TypeNote:
        if number not in self._types:
            self._types[number] = TypeNote()
            self._types[number] = self._find_type(number)
        return self._types[number]

    def _find_type(self, number: int) -> TypeNote:
        fields = self.fields(number)
        kind, tag, name = fields[""], fields.get("tag", ""), fields.get("name", "")
        base, bits = self.reference(number, "baseType"), int(fields.get("size", 0))
        if kind == "!DIBasicType":
            encoding = fields.get("encoding", "")
            return TypeNote(name=name, bits=bits, is_unsigned=encoding in _UNSIGNED,
                            is_signed=encoding in _SIGNED)  # fmt: skip
        if tag == "DW_TAG_pointer_type":
            target = self.fields(base).get("name", "")
            if target.startswith("opencl_"):  # an image, a sampler or an event
                plain = re.sub("_(?:ro|wo|rw)_t$", "_t", target[len("opencl_") :])
                return TypeNote(name=f"{plain.removesuffix('_t')}_t", bits=64)
            note = self.type_of(base) if base >= 0 else TypeNote(name="void")
            before = ("const " if note.is_const else "") + ("volatile " if note.is_volatile else "")
            return TypeNote(bits=64, target=base, name=f"{before}{note.name or 'struct'} *")
        elements = self.numbers(self.reference(number, "elements"))
        if tag == "DW_TAG_array_type":
            element, is_vector = self.type_of(base), "DIFlagVector" in fields.get("flags", "")
            counts = [int(self.fields(one).get("count", 1)) for one in elements]
            lanes = math.prod(counts) if is_vector else 1
            return TypeNote(
                name=f"{element.name}{lanes if is_vector else '[]'}", lanes=lanes, element=base,
                bits=bits, is_unsigned=element.is_unsigned, is_signed=element.is_signed,
            )  # fmt: skip
        if kind == "!DICompositeType":
            members = tuple(
                (own.get("name", ""), int(own.get("offset", 0)) // 8,
                 self.reference(one, "baseType"))
                for one in elements if (own := self.fields(one)).get("tag") == "DW_TAG_member"
            )  # fmt: skip
            return TypeNote(name=name, bits=bits, members=members)
        if tag == "DW_TAG_enumeration_type":
            return TypeNote(name=name, bits=32, is_unsigned=True)
        if base < 0:
            return TypeNote(name=name)
        inner = self.type_of(base)
        if tag == "DW_TAG_typedef":
            return replace(inner, name=name)
        return replace(
            inner, is_const=inner.is_const or tag == "DW_TAG_const_type",
            is_volatile=inner.is_volatile or tag == "DW_TAG_volatile_type",
            is_restrict=inner.is_restrict or tag == "DW_TAG_restrict_type",
        )  # fmt: skip

    def name_part(self, number: int, offset: int, bits: int) -> tuple[str, TypeNote] | None:
        """Name the part of a type that lies at an offset: ``.size.x``, ``[2]``, ``.s1``."""
        note = self.type_of(number)
        if note.members:
            for name, start, member in reversed(note.members):
                if start <= offset:
                    inner = self.name_part(member, offset - start, bits)
                    return inner and (f".{name}{inner[0]}", inner[1])
            return None
        element = self.type_of(note.element) if note.element else None
        if element is not None and element.bits and note.lanes > 1:
            if offset == 0 and bits == note.bits:
                return "", note
            return f".s{8 * offset // element.bits:x}", element
        if element is not None and element.bits:
            index, rest = divmod(8 * offset, element.bits)
            inner = self.name_part(note.element, rest // 8, bits)
            return inner and (f"[{index}]{inner[0]}", inner[1])
        return ("", note) if offset == 0 else None

    def read_object(self, lines: list[str], *notes: int) -> tuple[Place | None, str]:
        """Find where an object stands, by its address and its access, and its text."""
        for number in notes:
            place = self.place(number)
            if place is not None and 0 < place.line <= len(lines):
                line, column = lines[place.line - 1], max(0, place.column - 1)
                if _BEGINNING.match(line, column):
                    return place, read_expression(lines, place.line - 1, column)
                if number == notes[-1]:
                    return place, read_operand_before(line[:column])
        return self.place(notes[-1]), ""


def read_expression(lines: list[str], line: int, column: int) -> str:
    """Read the operand that begins at a place: ``a[i].x``, ``*p``, ``f(x)``."""
    text = "\n".join(lines[line : line + 4])
    start = place = max(0, column)
    while place < len(text) and text[place] in "*&+-!~":
        place += 1
    depth = 0
    while place < len(text):
        letter, match = text[place], _EXPRESSION.match(text, place)
        if letter in "([" or depth:
            depth += (letter in "([") - (letter in ")]")
            place += 1
        elif match is not None:
            place = match.end()
        else:
            break
    shown = " ".join(text[start:place].split())
    return shown if len(shown) <= 80 else shown[:77] + "..."


def read_operand_before(line: str) -> str:
    """Read the operand that stands before an operator such as ``+=``."""
    line = line.rstrip()
    start, depth = len(line), 0
    while start > 0:
        letter = line[start - 1]
        depth += (letter in "])") - (letter in "[(")
        if depth < 0 or (not depth and not (letter.isalnum() or letter in "_.[(>-*")):
            break
        start -= 1
    return line[start:]
