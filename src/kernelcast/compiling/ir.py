"""Reads the text of LLVM IR into light records: functions, blocks, instructions, notes."""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
_DEFINE: Final = re.compile(r"define [^@]*@([\w.$]+|\"[^\"]*\")\(")
_GLOBAL: Final = re.compile(
    r"(@[\w.$]+|@\"[^\"]*\") = (.*?)\b(global|constant) (.*)$"
)  # fmt: skip
_SCALAR_TYPE: Final = re.compile(
    r"(?:void|i\d+|half|bfloat|float|double|fp128|x86_fp80|label|token|metadata|opaque"
    r'|%[\w.$]+|%"[^"]*"|ptr(?: addrspace\(\d+\))?)'
)
_ATTRIBUTES: Final = re.compile(
    r"\A(?:(?:spir_func|spir_kernel|fastcc|ccc|noundef|nonnull|signext|zeroext|inreg|returned|immarg|noalias|nocapture|readonly"
    r"|writeonly|readnone|nofree|allocptr|swiftself|dead_on_return|nest|noext"
    r"|align \d+|captures\([^)]*\)|dereferenceable(?:_or_null)?\(\d+\)|initializes\(.*?\)\)"
    r"|(?:byval|sret|elementtype|byref|inalloca|preallocated)\((?:[^()]|\([^()]*\))*\)"
    r"|nofpclass\([^)]*\)|range\([^)]*\)|\"[^\"]*\"(?:=\"[^\"]*\")?) )*"
)
_BYVAL: Final = re.compile(r"\bby(?:val|ref)\(([^)]*)\)")
_MARK: Final = re.compile(r'"[^"]*"|[\[\]{}<>(),]')
_OPENING: Final = frozenset("[{<(")
_CLOSING: Final = frozenset("]}>)")
_FLAGS: Final = re.compile(
    r"(?:(?:weak|nsw|nuw|exact|disjoint|inbounds|nusw|nneg|samesign|fast|nnan|ninf|nsz|arcp|contract"
    r"|afn|reassoc|volatile|atomic|inrange\([^)]*\)) )*"
)
_ORDER: Final = re.compile(
    r" (?:syncscope\(.*|unordered|monotonic|acquire|release|acq_rel|seq_cst).*$"
)
_CALL: Final = re.compile(r"@([\w.$]+|\"[^\"]*\")\(")
_LABEL_OPERAND: Final = re.compile(r'label (%[\w.$-]+|%"[^"]*")')
_TESTED: Final = re.compile(r'(i\d+) (%"[^"]*"|\S+), label')
_PHI_EDGE: Final = re.compile(r'\[ (.*?), (%[\w.$-]+|%"[^"]*") \](?:, |$)')
_NOTE: Final = re.compile(r"\n!(\d+) = (?:distinct )?(.*)")


@dataclass(slots=True, eq=False)
class Instruction:
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
    name: str
    parameters: tuple[Operand, ...]
    by_value: tuple[str, ...]
    """Type of the argument that a parameter points to a copy of; empty for all others."""
    notes: dict[str, int]
    """Numbers of what is noted of it by name; ``dbg`` is its DISubprogram."""
    lines: list[str] = field(default_factory=list)

    @cached_property
    def blocks(self) -> dict[str, list[Instruction]]:
        """Give instructions by label, in order; few functions of a text are asked for them."""
        blocks: dict[str, list[Instruction]] = {}
        label = "%entry"
        lines = iter(self.lines)
        for line in lines:
            if match := _LABEL.match(line):
                label = "%" + match[1]
            elif match := _INSTRUCTION.match(line):
                rest = match[3]
                while match[2] == "switch" and "]" not in rest:
                    rest += next(lines)
                instruction = _read_instruction(match[1] or "", match[2], rest)
                instruction.block = label
                blocks.setdefault(label, []).append(instruction)
        return blocks


@dataclass(slots=True, eq=False)
class Global:
    name: str
    space: int
    type: str
    is_constant: bool
    value: str
    """Its initial value as written; empty where it has none."""
    note: int = -1


@dataclass(slots=True, eq=False)
class Module:
    functions: dict[str, Function]
    globals: dict[str, Global]
    types: dict[str, str]
    notes: dict[int, str]
    """Metadata by number."""
    _layouts: dict[str, tuple[int, list[int]]] = field(default_factory=dict)

    def required_local_size(self, function: Function) -> tuple[int, ...]:
        """Read the local size that a kernel requires; empty if any will do."""
        note = self.notes.get(function.notes.get("reqd_work_group_size", -1), "")
        return tuple(map(int, re.findall(r"i32 (\d+)", note)))

    def size_of(self, kind: str) -> int:
        """Size of a type in bytes, as arrays lay it out."""
        return self._lay_out(kind)[0]

    def member_offset(self, kind: str, index: int) -> tuple[int, str]:
        members = split_list(self.types.get(kind, kind).strip("<>")[1:-1].strip())
        return self._lay_out(kind)[1][index], members[index]

    def _lay_out(self, kind: str) -> tuple[int, list[int]]:
        """Ask LLVM for the size of a type, and for the offsets of a structure's members."""
        if kind not in self._layouts:
            from llvmlite import binding

            declared = (f"{name} = type {body}" for name, body in self.types.items())
            text = "\n".join((_LAYOUT, *declared, f"@x = external global {kind}"))
            with binding.parse_assembly(text, binding.create_context()) as module:
                found = module.get_global_variable("x").global_value_type
                data = binding.create_target_data(module.data_layout)
                members = enumerate(found.elements if found.is_struct else ())
                offsets = [data.get_element_offset(found, place) for place, _ in members]
                self._layouts[kind] = data.get_abi_size(found), offsets
        return self._layouts[kind]

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
        elif value.startswith("0xH"):
            content = int(value[3:], 16).to_bytes(2, "little")
        elif kind in ("half", "float", "double"):
            is_hexadecimal = value.startswith("0x")  # the bits of a double
            bits = struct.pack("<Q", int(value, 16)) if is_hexadecimal else b""
            decimal = struct.unpack("<d", bits)[0] if is_hexadecimal else float(value)
            content = struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], decimal)
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


_LAYOUT: Final = (
    'target datalayout = "e-p:64:64-i64:64-v24:32-v48:64-v96:128-v192:256-v256:256-v512:512"'
)
"""OpenCL C's, on all targets."""
_SEQUENCE: Final = re.compile(r"[\[<](\d+) x (.*)[\]>]$")


def split_sequence(name: str) -> tuple[int, str] | None:
    """Length and element of an array's or a vector's type."""
    match = _SEQUENCE.match(name) if name[:1] in "[<" and not name.startswith("<{") else None
    return (int(match[1]), match[2]) if match else None


def number_space(name: str) -> int:
    return int(name.partition("addrspace(")[2].partition(")")[0] or 0)


def is_vector(name: str) -> bool:
    return name.startswith("<") and not name.startswith("<{")


def lane_of(name: str) -> str:
    """Type of a vector's lanes; any other type is its own."""
    sequence = split_sequence(name) if is_vector(name) else None
    return sequence[1] if sequence else name


def split_list(text: str) -> list[str]:
    """Split at the commas that no bracket holds."""
    parts, depth, start = [], 0, 0
    for match in _MARK.finditer(text):
        depth += (match[0] in _OPENING) - (match[0] in _CLOSING)
        if match[0] == "," and not depth:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    last = text[start:].strip()
    return [*parts, last] if last else parts


def read_type(text: str, start: int = 0) -> int:
    """Find where the type, or the list in parentheses, that begins at a place ends."""
    is_target = text.startswith("target(", start)
    if text[start] in _OPENING or is_target:
        depth = 0
        for match in _MARK.finditer(text, start + 6 * is_target):
            depth += (match[0] in _OPENING) - (match[0] in _CLOSING)
            if not depth:
                return match.end()
    scalar = _SCALAR_TYPE.match(text, start)
    return scalar.end() if scalar else len(text)


def read_operand(text: str, kind: str = "") -> Operand:
    """Read a type and a value, or a value alone whose type is `kind`."""
    end = read_type(text)
    if kind and text[end : end + 1] != " ":
        return kind, text
    return text[:end], _ATTRIBUTES.sub("", text[end:].strip())


def read_module(text: str) -> Module:
    functions: dict[str, Function] = {}
    variables: dict[str, Global] = {}
    types: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if defined := _DEFINE.match(line):
            begin = defined.end() - 1
            end = read_type(line, begin)
            parts = split_list(line[begin + 1 : end - 1])
            function = Function(
                name=defined[1].strip('"'), parameters=tuple(read_operand(one) for one in parts),
                by_value=tuple("".join(_BYVAL.findall(one)) for one in parts),
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
    noted = {int(number): body for number, body in _NOTE.findall(text)}
    return Module(functions, variables, types, noted)


_MEMORY: Final = frozenset(("load", "store", "atomicrmw", "cmpxchg"))
_CASTS: Final = frozenset((
    "sext", "zext", "trunc", "fptosi", "fptoui", "sitofp", "uitofp", "fpext", "fptrunc", "bitcast",
    "addrspacecast", "ptrtoint", "inttoptr", "ptrtoaddr",
))  # fmt: skip
_OF_SECOND: Final = frozenset(("select", "shufflevector", "atomicrmw", "cmpxchg"))
"""Instructions of the type of their second operand; others are of that of their first."""


def _read_instruction(name: str, opcode: str, rest: str) -> Instruction:
    attached = _ATTACHED.search(rest)
    notes = dict(_NOTE_REFERENCE.findall(attached[0])) if attached else {}
    rest = rest[: attached.start()] if attached else rest
    found = _FLAGS.match(rest)
    flags = found[0] if found else ""
    rest = rest[len(flags) :]
    kind, detail = "void", opcode if opcode == "cmpxchg" else ""
    operands: tuple[Operand, ...] = ()
    labels: tuple[str, ...] = ()
    if opcode == "call":
        kind, operands, detail = _read_call(rest)
    elif opcode in ("br", "switch"):
        labels, operands = tuple(_LABEL_OPERAND.findall(rest)), tuple(_TESTED.findall(rest))
        kind = operands[0][0] if opcode == "switch" else kind
    elif opcode == "phi":
        end = read_type(rest)
        kind, edges = rest[:end], _PHI_EDGE.findall(rest[end:])
        operands = tuple((kind, value) for value, _ in edges)
        labels = tuple(label for _, label in edges)
    elif rest not in ("", "void"):
        if opcode in ("icmp", "fcmp", "atomicrmw"):
            detail, _, rest = rest.partition(" ")
        elif opcode in _CASTS:
            rest, _, kind = rest.rpartition(" to ")
        parts = split_list(_ORDER.sub("", rest))[:2] if opcode in _MEMORY else split_list(rest)
        if opcode in ("alloca", "load", "getelementptr"):
            detail, *parts = parts
        for part in parts if opcode != "alloca" else ():
            operands += (read_operand(part, operands[0][0] if operands else ""),)
        if opcode == "alloca":
            kind = "ptr"
        elif opcode == "load":
            kind, detail = detail, ""
        elif opcode == "extractelement":
            kind = lane_of(operands[0][0])
        elif opcode == "shufflevector":
            lanes, _ = split_sequence(operands[2][0]) or (1, "")
            kind = f"<{lanes} x {lane_of(operands[0][0])}>"
        elif opcode != "ret" and opcode not in _CASTS:
            kind = operands[opcode in _OF_SECOND][0]
    return Instruction(
        opcode, name, kind, operands, note=int(notes.get("dbg", -1)),
        loop_note=int(notes.get("llvm.loop", -1)), detail=detail, labels=labels, flags=flags,
    )  # fmt: skip


def _read_call(rest: str) -> tuple[str, tuple[Operand, ...], str]:
    """Read what a call returns, its arguments, and what is called."""
    match = _CALL.search(rest)
    if match is None:
        return "void", (), ""
    before = _ATTRIBUTES.sub("", rest[: match.start()].strip())
    start = match.end() - 1
    end = read_type(rest, start)
    arguments = tuple(read_operand(one) for one in split_list(rest[start + 1 : end - 1]))
    return before[: read_type(before)] if before else "void", arguments, match[1].strip('"')
