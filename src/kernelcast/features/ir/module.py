"""Reads the text of LLVM IR into light records: functions, blocks, instructions, notes."""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Final

Operand = tuple[str, str]
"""Type and value, both as in the text: ``("i32", "%x")``."""

_INSTRUCTION: Final = re.compile(
    r'\s+(?:(%[\w.$-]+|%"[^"]*") = )?(?:(?:tail|musttail|notail) )?(\w+) ?(.*)'
)
_ATTACHED: Final = re.compile(r"(?:, ![\w.]+ !\d+)+$")
_NOTE_REFERENCE: Final = re.compile(r"!(dbg|llvm\.loop) !(\d+)")
_LABEL: Final = re.compile(r'("[^"]*"|[\w.$-]+):')
_DEFINE: Final = re.compile(r"define [^@]*?(\S+) @([\w.$]+|\"[^\"]*\")\(")
_GLOBAL: Final = re.compile(
    r"(@[\w.$]+|@\"[^\"]*\") = (.*?)\b(global|constant) (.*)$"
)  # fmt: skip
_SCALAR_TYPE: Final = re.compile(
    r"(?:void|i\d+|half|bfloat|float|double|fp128|x86_fp80|label|token|metadata|opaque"
    r'|%[\w.$]+|%"[^"]*"|ptr(?: addrspace\(\d+\))?)'
)
_ATTRIBUTE: Final = re.compile(
    r"(?:spir_func|spir_kernel|fastcc|ccc|noundef|nonnull|signext|zeroext|inreg|returned|immarg|noalias|nocapture|readonly"
    r"|writeonly|readnone|nofree|allocptr|swiftself|dead_on_return|nest|noext"
    r"|align \d+|captures\([^)]*\)|dereferenceable(?:_or_null)?\(\d+\)|initializes\(.*?\)\)"
    r"|(?:byval|sret|elementtype|byref|inalloca|preallocated)\((?:[^()]|\([^()]*\))*\)"
    r"|nofpclass\([^)]*\)|range\([^)]*\)|\"[^\"]*\"(?:=\"[^\"]*\")?) "
)
_BYVAL: Final = re.compile(r"\bbyval\(")
_CLOSING: Final = {"[": "]", "{": "}", "<": ">", "(": ")"}
_FLAGS: Final = re.compile(
    r"(?:(?:nsw|nuw|exact|disjoint|inbounds|nusw|nneg|samesign|fast|nnan|ninf|nsz|arcp|contract"
    r"|afn|reassoc|volatile|atomic|inrange\([^)]*\)) )*"
)
_ORDER: Final = re.compile(
    r" (?:syncscope\(.*|unordered|monotonic|acquire|release|acq_rel|seq_cst).*$"
)
_CALL: Final = re.compile(r"@([\w.$]+|\"[^\"]*\")\(")
_CASE: Final = re.compile(r"\s+(\S+) (\S+), label (%\S+)")
_LABEL_OPERAND: Final = re.compile(r'label (%[\w.$-]+|%"[^"]*")')
_PHI_EDGE: Final = re.compile(r'\[ (.*?), (%[\w.$-]+|%"[^"]*") \](?:, |$)')
_NOTE: Final = re.compile(r"\n!(\d+) = (?:distinct )?(.*)")


@dataclass(slots=True, eq=False)
class Instruction:
    """One instruction."""

    opcode: str
    name: str
    """Its result, ``%x``; empty where it has none."""
    type: str
    """Of the result; of what is stored; of what is compared."""
    operands: tuple[Operand, ...]
    block: str = ""
    note: int = -1
    """Number of its debug location."""
    loop_note: int = -1
    detail: str = ""
    """Predicate of a comparison, called function, source type of a getelementptr, operation of an
    atomic, type of an alloca."""
    labels: tuple[str, ...] = ()
    """Successors of a terminator; blocks that a phi's values come from."""
    flags: str = ""


@dataclass(eq=False)
class Function:
    """A function that the module defines."""

    name: str
    parameters: tuple[Operand, ...]
    """Types and names."""
    by_value: tuple[bool, ...]
    """Whether a parameter points to a copy of the argument."""
    notes: dict[str, int]
    """Numbers of what is noted of it by name; ``dbg`` is its DISubprogram."""
    lines: list[str] = field(default_factory=list)
    """Of its body."""

    @cached_property
    def blocks(self) -> dict[str, list[Instruction]]:
        """Give instructions by label, in order; few functions of a text are asked for them."""
        blocks: dict[str, list[Instruction]] = {}
        label = "%entry"
        block: list[Instruction] = []
        lines = iter(self.lines)
        for line in lines:
            if not line or line.startswith("    #dbg") or line.lstrip().startswith(";"):
                continue
            if line[0] != " ":
                if match := _LABEL.match(line):
                    if block:
                        blocks[label] = block
                    label, block = "%" + match[1], []
                continue
            match = _INSTRUCTION.match(line)
            if match is None:
                continue
            rest = match[3]
            if match[2] == "switch" and rest.endswith("["):
                for case in lines:
                    if case.strip().startswith("]"):
                        rest += case.strip()[1:]
                        break
                    rest += "|" + case
            instruction = _read_instruction(match[1] or "", match[2], rest)
            instruction.block = label
            block.append(instruction)
        if block:
            blocks[label] = block
        return blocks


@dataclass(slots=True, eq=False)
class Global:
    """A variable of the program."""

    name: str
    space: int
    type: str
    is_constant: bool
    value: str
    """Its initial value as written; empty where it has none."""
    note: int = -1
    """Number of what the compiler notes of it."""


@dataclass(slots=True, eq=False)
class Module:
    """What a text of LLVM IR holds."""

    functions: dict[str, Function]
    globals: dict[str, Global]
    types: dict[str, str]
    """Named types."""
    notes: dict[int, str]
    """Metadata by number."""

    def required_local_size(self, function: Function) -> tuple[int, ...]:
        """Read the local size that a kernel requires; empty if any will do."""
        note = self.notes.get(function.notes.get("reqd_work_group_size", -1), "")
        return tuple(map(int, re.findall(r"i32 (\d+)", note)))

    def size_of(self, name: str) -> int:
        """Size of a type in bytes, as arrays lay it out."""
        return _measure(self, name)[0]

    def member_offset(self, struct: str, index: int) -> tuple[int, str]:
        """Offset in bytes and type of a member."""
        return _lay_out(self, self.types.get(struct, struct))[0][index]

    def list_steps(
        self, kind: str, indices: Sequence[Operand]
    ) -> Iterator[tuple[Operand | None, int]]:
        """List indices of a getelementptr, None for a member, with the bytes that one moves by."""
        for position, operand in enumerate(indices):
            if position and "{" in self.types.get(kind, kind):
                offset, kind = self.member_offset(kind, int(operand[1]))
                yield None, offset
                continue
            if position:
                sequence = split_sequence(kind)
                kind = sequence[1] if sequence else kind
            yield operand, self.size_of(kind)

    def encode(self, kind: str, value: str) -> bytes:
        """Lay a constant out as memory holds it; refuse addresses by a `ValueError`."""
        size = self.size_of(kind)
        if value in ("undef", "poison", "zeroinitializer", "null", "false"):
            content = b""
        elif value == "true":
            content = b"\1"
        elif kind in ("half", "float", "double"):
            content = struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], _read_float(value))
        elif value.lstrip("-").isdigit():
            content = (int(value) % (1 << (8 * size))).to_bytes(size, "little")
        elif value.startswith('c"'):
            content = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda one: bytes.fromhex(one[1].decode()),
                             value[2:-1].encode())  # fmt: skip
        elif value.startswith("splat (") and (sequence := split_sequence(kind)):
            content = self.encode(*read_operand(value[7:-1])) * sequence[0]
        elif value.startswith(("[", "<")) and split_sequence(kind) is not None:
            content = b"".join(self.encode(*read_operand(one)) for one in split_list(value[1:-1]))
        elif value.startswith("{"):
            content = b""
            for number, one in enumerate(split_list(value[1:-1].strip())):
                offset, _ = self.member_offset(kind, number)
                content = content.ljust(offset, b"\0") + self.encode(*read_operand(one))
        else:
            raise ValueError(f"the constant {value[:40]}")
        return content.ljust(size, b"\0")


def _read_float(text: str) -> float:
    """Read a number as LLVM IR writes it: in decimal, or the bits of a double."""
    form, bits = ("<e", "<H") if text[:3] == "0xH" else ("<d", "<Q")
    if not text.startswith("0x"):
        return float(text)
    [number] = struct.unpack(form, struct.pack(bits, int(text.removeprefix("0xH"), 16)))
    return float(number)


_SIZES: Final = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "fp128": 16}
_SEQUENCE: Final = re.compile(r"[\[<](\d+) x (.*)[\]>]$")


def split_sequence(name: str) -> tuple[int, str] | None:
    """Length and element of an array's or a vector's type."""
    match = _SEQUENCE.match(name) if name[:1] in "[<" and not name.startswith("<{") else None
    return (int(match[1]), match[2]) if match else None


def number_space(name: str) -> int:
    """Give the number of the address space that a type names."""
    return int(name.partition("addrspace(")[2].partition(")")[0] or 0)


def is_vector(name: str) -> bool:
    return name.startswith("<") and not name.startswith("<{")


def lane_of(name: str) -> str:
    """Type of a vector's lanes; any other type is its own."""
    sequence = split_sequence(name) if is_vector(name) else None
    return sequence[1] if sequence else name


def _measure(module: Module, name: str) -> tuple[int, int]:
    """Size and alignment in bytes."""
    name = module.types.get(name, name)
    if name in _SIZES:
        return _SIZES[name], _SIZES[name]
    if name.startswith("i") and name[1:].isdigit():
        size = max(1, 1 << max(0, (int(name[1:]) - 1)).bit_length() >> 3)
        return size, size
    if name.startswith("ptr"):
        size = 4 if "(5)" in name else 8
        return size, size
    sequence = split_sequence(name)
    if sequence is not None:
        count, element = sequence
        size, align = _measure(module, element)
        if name.startswith("<"):
            bits = count if element == "i1" else 8 * count * size
            whole = 1 << max(0, -(-bits // 8) - 1).bit_length()
            return whole, whole
        return count * size, align
    if name.startswith(("{", "<{")):
        _, size, align = _lay_out(module, name)
        return size, align
    return 8, 8


def _lay_out(module: Module, struct: str) -> tuple[list[tuple[int, str]], int, int]:
    """Offsets in bytes and types of members, size and alignment."""
    members: list[tuple[int, str]] = []
    offset, most = 0, 1
    for member in _members(struct):
        size, align = _measure(module, member)
        align = 1 if struct.startswith("<{") else align
        offset = -(-offset // align) * align
        members.append((offset, member))
        offset, most = offset + size, max(most, align)
    return members, -(-offset // most) * most, most


@lru_cache(maxsize=1024)
def _members(struct: str) -> tuple[str, ...]:
    inner = struct.strip("<>")[1:-1].strip() if "{" in struct else ""
    return tuple(part.strip() for part in split_list(inner))


def split_list(text: str) -> list[str]:
    """Split at the commas that no bracket holds."""
    if not any(one in text for one in '[{<("'):
        return text.split(", ") if text else []
    parts, depth, start, quoted = [], 0, 0, False
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "[{<(":
            depth += 1
        elif letter in "]}>)":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def read_type(text: str, start: int = 0) -> int:
    """Find where the type that begins at a place ends."""
    opening = text[start]
    if opening in _CLOSING:
        depth = 0
        for place in range(start, len(text)):
            if text[place] in "[{<(":
                depth += 1
            elif text[place] in "]}>)":
                depth -= 1
                if not depth:
                    return place + 1
    if text.startswith("target(", start):
        return read_type(text, start + 6)
    match = _SCALAR_TYPE.match(text, start)
    return match.end() if match else len(text)


def read_operand(text: str) -> Operand:
    """Read a type and a value; attributes of parameters are left out."""
    end = read_type(text)
    return text[:end], _skip_attributes(text[end:].strip())


def _skip_attributes(text: str) -> str:
    while match := _ATTRIBUTE.match(text):
        text = text[match.end() :]
    return text


def read_module(text: str) -> Module:
    functions: dict[str, Function] = {}
    variables: dict[str, Global] = {}
    types: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith("define "):
            defined = _DEFINE.match(line)
            if defined is None:
                raise ValueError(f"no definition of a function: {line}")
            begin = defined.end() - 1
            end = read_type(line, begin)
            parts = split_list(line[begin + 1 : end - 1])
            function = Function(
                name=defined[2].strip('"'), parameters=tuple(read_operand(one) for one in parts),
                by_value=tuple(bool(_BYVAL.search(one)) for one in parts),
                notes={
                    key: int(number) for key, number in re.findall(r"!([\w.]+) !(\d+)", line[end:])
                },
            )  # fmt: skip
            functions[function.name] = function
            function.lines = list(takewhile(lambda one: not one.startswith("}"), lines))
        elif line.startswith("@") and (match := _GLOBAL.match(line)):
            end = read_type(match[4])
            value = match[4][end:].strip()
            is_external = " external " in f" {match[2]}"
            note = re.search(r"!dbg !(\d+)", value)
            variables[match[1]] = Global(
                name=match[1], space=number_space(match[2]), type=match[4][:end],
                is_constant=match[3] == "constant",
                value="" if is_external else next(iter(split_list(value)), ""),
                note=int(note[1]) if note else -1,
            )  # fmt: skip
        elif line.startswith("%") and " = type " in line:
            name, _, body = line.partition(" = type ")
            types[name] = body
        elif line.startswith("!0 = "):
            break
    start = text.find("\n!0 = ")
    bodies = _NOTE.findall(text[start:]) if start >= 0 else []
    noted = {int(number): body for number, body in bodies}
    return Module(functions, variables, types, noted)


def _read_instruction(name: str, opcode: str, rest: str) -> Instruction:  # noqa: C901 - forms differ
    note = loop_note = -1
    attached = _ATTACHED.search(rest)
    if attached is not None:
        for key, number in _NOTE_REFERENCE.findall(attached[0]):
            if key == "dbg":
                note = int(number)
            else:
                loop_note = int(number)
        rest = rest[: attached.start()]
    found = _FLAGS.match(rest)
    flags = found[0] if found else ""
    rest = rest[len(flags) :]
    kind, detail = "void", ""
    operands: tuple[Operand, ...] = ()
    labels: tuple[str, ...] = ()
    match opcode:
        case "call":
            kind, operands, detail = _read_call(rest)
        case "br":
            labels = tuple(_LABEL_OPERAND.findall(rest))
            if len(labels) > 1:
                operands = (("i1", rest.partition(",")[0][3:]),)
        case "switch":
            head, *cases = rest.split("|")
            read = [match for case in cases if (match := _CASE.match(case))]
            asked = read_operand(head.partition(", label")[0])
            kind, operands = asked[0], (asked, *((one[1], one[2]) for one in read))
            labels = (_LABEL_OPERAND.findall(head)[0], *(one[3].rstrip("]") for one in read))
        case "phi":
            end = read_type(rest)
            kind, edges = rest[:end], _PHI_EDGE.findall(rest[end:])
            operands = tuple((kind, value) for value, _ in edges)
            labels = tuple(label for _, label in edges)
        case "load":
            kind, address, *_ = split_list(rest)
            operands = (read_operand(_ORDER.sub("", address)),)
        case "store":
            value, address, *_ = split_list(rest)
            operands = (read_operand(value), read_operand(_ORDER.sub("", address)))
            kind = operands[0][0]
        case "atomicrmw" | "cmpxchg":
            rest = rest.removeprefix("weak ").removeprefix("volatile ")
            detail = "cmpxchg"
            if opcode == "atomicrmw":
                detail, _, rest = rest.partition(" ")
            address, value, *_ = split_list(rest)
            operands = (read_operand(address), read_operand(_ORDER.sub("", value)))
            kind = operands[1][0]
        case "getelementptr":
            detail, *parts = split_list(rest)
            operands = tuple(read_operand(one) for one in parts)
            kind = operands[0][0]
        case "alloca":
            kind, detail = "ptr", split_list(rest)[0]
        case "ret":
            if rest and not rest.startswith("void"):
                operands = (read_operand(rest),)
        case _ if opcode in _CASTS:
            value, _, kind = rest.rpartition(" to ")
            operands = (read_operand(value),)
        case _ if opcode in _TYPED:
            operands = tuple(read_operand(one) for one in split_list(rest))
            kind = operands[opcode in ("select", "shufflevector")][0]
            sequence = split_sequence(operands[0][0])
            if opcode == "extractelement":
                kind = sequence[1] if sequence else "i32"
            elif opcode == "shufflevector" and sequence:
                mask = split_sequence(operands[2][0])
                kind = f"<{mask[0]} x {sequence[1]}>" if mask else kind
        case _ if rest:  # ``add i32 %a, %b`` and all that looks so
            if opcode in ("icmp", "fcmp"):
                detail, _, rest = rest.partition(" ")
            end = read_type(rest)
            kind = rest[:end]
            operands = tuple((kind, one) for one in split_list(rest[end:].strip()))
    return Instruction(
        opcode, name, kind, operands, note=note, loop_note=loop_note, detail=detail, labels=labels,
        flags=flags,
    )  # fmt: skip


_CASTS: Final = frozenset((
    "sext", "zext", "trunc", "fptosi", "fptoui", "sitofp", "uitofp", "fpext", "fptrunc", "bitcast",
    "addrspacecast", "ptrtoint", "inttoptr", "ptrtoaddr",
))  # fmt: skip
_TYPED: Final = frozenset((
    "select", "extractelement", "insertelement", "shufflevector", "insertvalue", "extractvalue",
))  # fmt: skip
"""Instructions whose operands each name their type."""


def _read_call(rest: str) -> tuple[str, tuple[Operand, ...], str]:
    """Read what a call returns, its arguments, and what is called."""
    match = _CALL.search(rest)
    if match is None:
        return "void", (), ""
    before = _skip_attributes(rest[: match.start()].strip())
    start = match.end() - 1
    end = read_type(rest, start)
    arguments = tuple(read_operand(one) for one in split_list(rest[start + 1 : end - 1]))
    return before[: read_type(before)] if before else "void", arguments, match[1].strip('"')
