"""Writes the copy of a kernel that counts how often each of its blocks is executed.

The copy is OpenCL C again, made of the compiled code from which the facts come: a statement for
each instruction, a label for each block. So counters and addresses are those of the facts, and
macros, helper functions and included files need no thought. Memory is read and written by bytes'
addresses, which tell the device's compiler no types.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kernelcast.compiling.ir import (
    Instruction,
    Operand,
    is_vector,
    lane_of,
    number_space,
    read_operand,
    split_list,
    split_sequence,
)
from kernelcast.compiling.signatures import read_types
from kernelcast.features.analysis import read_code
from kernelcast.features.ir.operations import (
    INTRINSICS,
    lanes_of,
    mangled_types,
    name_called,
    read_vector_access,
)
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.software_counters import InstrumentedKernel

_HEADER: Final = """\
static inline size_t kc_row(void)
{
    return ((get_global_id(2) - get_global_offset(2)) * get_global_size(1)
        + get_global_id(1) - get_global_offset(1)) * get_global_size(0)
        + get_global_id(0) - get_global_offset(0);
}
static inline size_t kc_rows(void)
{ return get_global_size(0) * get_global_size(1) * get_global_size(2); }
static inline void kc_note(size_t kc_row, uint kc_i, __global ulong *kc_log, uint kc_capacity,
                           uint kc_site, ulong kc_address)
{
    if (kc_i < kc_capacity) {
        const size_t kc_at = 2 * (kc_row * kc_capacity + kc_i);
        kc_log[kc_at] = kc_site;
        kc_log[kc_at + 1] = kc_address;
    }
}
"""
_UNSIGNED: Final = {"i1": "int", "i8": "uchar", "i16": "ushort", "i32": "uint", "i64": "ulong",
                    "half": "half", "float": "float", "double": "double"}  # fmt: skip
_SIGNED: Final = {**_UNSIGNED, "i8": "char", "i16": "short", "i32": "int", "i64": "long"}
_WORDS: Final = {"half": "ushort", "float": "uint", "double": "ulong"}
_SPACES: Final = ("__private", "__global", "__constant", "__local", "__generic")
_OPAQUE: Final = re.compile(r'target\("spirv\.(\w+)".*?(?:, (\d+))?\)')
_FORMS: Final = {
    **{opcode: f"{{0}} {sign} {{1}}" for opcode, sign in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("and", "&"), ("or", "|"), ("xor", "^"),
        ("udiv", "/"), ("urem", "%"), ("shl", "<<"), ("lshr", ">>"), ("fadd", "+"), ("fsub", "-"),
        ("fmul", "*"), ("fdiv", "/"),
    )},
    **dict.fromkeys(("ptrtoint", "ptrtoaddr", "inttoptr"), "({kind})(ulong){0}"),
    "frem": "fmod({0}, {1})", "fneg": "-{0}", "freeze": "{0}", "addrspacecast": "({kind}){0}",
    "fmuladd": "{0} * {1} + {2}",
}  # fmt: skip
"""What instructions and intrinsics are written as, by operands and the type of the result."""
_SIGNED_FORMS: Final = {"sdiv": "{} / {}", "srem": "{} % {}", "ashr": "{} >> {}",
                        "smin": "min({}, {})", "smax": "max({}, {})"}  # fmt: skip
"""The same of operands that have a sign."""
_COMPARED: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# What holds for numbers that have no order is the opposite of what holds for no such numbers.
_ORDERED: Final = {"oeq": "isequal", "ogt": "isgreater", "oge": "isgreaterequal", "olt": "isless",
                   "ole": "islessequal", "one": "islessgreater", "ord": "isordered"}  # fmt: skip
_UNORDERED: Final = {"une": "oeq", "ule": "ogt", "ult": "oge", "uge": "olt", "ugt": "ole",
                     "ueq": "one", "uno": "ord"}  # fmt: skip
_NOTHING: Final = re.compile(
    r"llvm\.(?:lifetime|dbg|assume|experimental\.noalias|donothing|expect)|.*printf"
)
_OF_OTHER_OPERANDS: Final = ("ctlz", "cttz", "abs", "fshl", "fshr")
_EXTENSIONS: Final = "".join(
    f"#ifdef {name}\n#pragma OPENCL EXTENSION {name} : enable\n#endif\n"
    for name in ("cl_khr_fp64", "cl_khr_fp16", "cl_khr_int64_base_atomics",
                 "cl_khr_int64_extended_atomics")
)  # fmt: skip


def write_counting_copy(kernel: Kernel) -> InstrumentedKernel:
    return _Writer(kernel).write()


class _Writer:
    def __init__(self, kernel: Kernel) -> None:
        reader, facts = read_code(kernel)
        errors = [gap.reason for gap in facts.gaps if "error in the source" in gap.reason]
        if errors:
            raise InputError(f"kernel {kernel.name}: cannot be counted; {errors[0]}")
        self._kernel, self._counters, self._log = kernel, reader.counters, len(reader.counters)
        self._evaluator, self._flow = reader.code, reader.code.flow
        self._module, self._function = self._evaluator.module, self._evaluator.function
        self._names: dict[str, str] = {}
        self._program: list[str] = []
        """Declarations ahead of the kernel."""
        self._declared: list[str] = []
        """At the beginning of its body."""
        self._body: list[str] = []
        self._labels = {label: f"kc_l{number}" for number, label in enumerate(self._flow.order)}
        self._touched: dict[int, list[tuple[int, Operand]]] = defaultdict(list)
        for one, operand, site in reader.touches:
            self._touched[id(one)].append((site, operand))
        self._buffers = {access.site: access.buffer or "" for access in facts.accesses}
        self._bases: dict[str, str] = {}
        """Where buffers and arrays begin, by name."""

    def write(self) -> InstrumentedKernel:
        parameters = []
        for number, (kind, name) in enumerate(self._function.parameters):
            own = self._names[name] = f"kc_p{number}"
            note = self._evaluator.type_of(name)
            if self._function.by_value[number]:
                size = note.bits // 8
                align = next(one for one in (8, 4, 2, 1) if size % one == 0)
                self._program.append(
                    f"typedef struct {{ uchar kc_bytes[{size}]; }} "
                    f"__attribute__((aligned({align}))) kc_t{number};"
                )
                self._names[name] = f"((__private uchar *)&{own})"
                parameters.append(f"kc_t{number} {own}")
            elif match := _OPAQUE.match(kind):
                qualifier = ("read_only ", "write_only ", "read_write ")[int(match[2] or 0)]
                qualifier = qualifier if match[1] == "Image" else ""
                parameters.append(f"{qualifier}{note.name} {own}")
            else:
                if kind.startswith("ptr"):
                    self._bases[name[1:]] = f"(ulong){own}"
                parameters.append(f"{self._type(kind)} {own}")
        for one in self._flow.list_instructions():
            if one.name:
                self._declare(one)
        for label in self._flow.order:
            self._body.append(f"{self._labels[label]}: ;")
            if label in self._counters:
                self._body.append(f"kc_n{self._counters[label]}++;")
            for one in self._flow.blocks[label]:
                for site, operand in self._touched[id(one)]:
                    touched = f"(ulong){self._operand(operand)}"
                    access = read_vector_access(one, self._module)
                    if access is not None:
                        touched += f" + {self._operand(access.index)} * {access.stride}ul"
                    base = self._bases.get(self._buffers.get(site, ""), "0")
                    self._body.append(f"kc_note(kc_at, kc_n{self._log}++, kc_log, kc_capacity, "
                                      f"{site}, {touched} - {base});")  # fmt: skip
                self._write_statement(one)
        parameters += ["__global uint *kc_counts", "__global ulong *kc_log", "uint kc_capacity"]
        words = range(self._log + 1)
        sizes = ", ".join(map(str, self._module.required_local_size(self._function)))
        required = f"__attribute__((reqd_work_group_size({sizes}))) " if sizes else ""
        source = "\n".join((
            _EXTENSIONS, *self._program,
            f"__kernel {required}void {self._kernel.name}({', '.join(parameters)})",
            "{", *(f"uint kc_n{word} = 0;" for word in words), "const size_t kc_at = kc_row();",
            *self._declared, *self._body, "kc_end: ;", "const size_t kc_apart = kc_rows();",
            *(f"kc_counts[{word} * kc_apart + kc_at] = kc_n{word};" for word in words), "}",
        ))  # fmt: skip
        return InstrumentedKernel(
            kernel=replace(self._kernel, source=source), header=_HEADER, counter_count=self._log
        )

    def _refuse(self, what: str, one: Instruction | None = None) -> InputError:
        place = self._evaluator.line_of(one) if one is not None else 0
        where = f"line {place}: " if place else ""
        return InputError(f"kernel {self._kernel.name}: {where}{what} cannot be counted")

    # Declarations

    def _type(self, kind: str, *, is_signed: bool = False) -> str:
        """Name a type; conditions of vectors are -1 and 0, in lanes of 8 bits."""
        if kind.startswith("ptr"):
            return f"{_SPACES[number_space(kind)]} uchar *"
        names = _SIGNED if is_signed else _UNSIGNED
        lane = lane_of(kind)
        if kind in names:
            return names[kind]
        if lane in names and lanes_of(kind) in (2, 3, 4, 8, 16):
            return f"{'char' if lane == 'i1' else names[lane]}{lanes_of(kind)}"
        if kind.startswith('target("spirv.Event"'):
            return "event_t"
        raise self._refuse(f"a value of type {kind}")

    def _declare(self, one: Instruction) -> None:
        name = self._names[one.name] = f"kc_v{len(self._names)}"
        if one.opcode == "alloca":
            if one.detail.startswith("target"):
                self._declared.append(f"{self._type(one.detail)} {name};")
                self._names[one.name] = f"((__private uchar *)&{name})"
            else:
                size = self._module.size_of(one.detail)
                self._declared.append(f"uchar {name}[{size}] __attribute__((aligned(16)));")
        elif one.type != "void" and not name_called(one).startswith("__translate_sampler"):
            kind = one.type
            if one.opcode in ("icmp", "fcmp"):
                kind = f"<{lanes_of(kind)} x i1>" if is_vector(kind) else "i1"
            names = (name, f"{name}_next") if one.opcode == "phi" else (name,)
            self._declared += [f"{self._type(kind)} {each};" for each in names]

    def _global(self, text: str) -> str:
        """Give the address of a variable of the program, and declare it."""
        if text in self._names:
            return self._names[text]
        variable = self._module.globals.get(text)
        if variable is None:
            raise self._refuse(f"the address of {text}")
        name = self._names[text] = f"kc_g{len(self._names)}"
        size = self._module.size_of(variable.type)
        declared = f"uchar {name}[{size}] __attribute__((aligned(16)))"
        if variable.space == 3:
            self._declared.append(f"__local {declared};")
        elif not variable.value:
            raise self._refuse(f"{text[1:]}, which is not defined,")
        else:
            values = ",".join(map(str, self._encode(variable.type, variable.value)))
            space = "__constant" if variable.space in (0, 2) else "__global"
            self._program.append(f"{space} {declared} = {{{values}}};")
        if variable.space in (2, 3) and not text.startswith("@__const."):
            self._bases[self._evaluator.name_global(text)] = f"(ulong){name}"
        return name

    def _encode(self, kind: str, value: str) -> bytes:
        try:
            return self._module.encode(kind, value)
        except ValueError as error:
            raise self._refuse(str(error)) from error

    # Operands

    def _operand(self, operand: Operand) -> str:
        kind, text = operand
        if text.startswith("%"):
            if text not in self._names:
                raise self._refuse(f"the value {text}")
            return self._names[text]
        name = self._type(kind)
        if text.startswith("@"):
            return f"(({name}){self._global(text)})"
        if text.startswith("getelementptr"):
            source, *operands = split_list(text[text.index("(") + 1 : -1])
            return self._move([read_operand(one) for one in operands], source)
        if text.startswith(("addrspacecast (", "bitcast (", "inttoptr (")):
            inner = read_operand(text[text.index("(") + 1 : text.rindex(" to ")])
            return f"(({name}){self._operand(inner)})"
        if name == "event_t":
            return "0"
        lane, numbers = lane_of(kind), self._list_lanes(operand)
        if lane == "i1":
            texts = [f"{'-' if is_vector(kind) else ''}{number & 1}" for number in numbers]
        else:
            word, plain = _WORDS.get(lane, ""), self._type(lane)
            form = f"as_{plain}(({word}){{:#x}}" if word else f"(({plain}){{}}"
            ending = "ul)" if lane in ("i64", "double") else "u)"
            texts = [form.format(number) + ending for number in numbers]
        return f"(({name})({', '.join(texts)}))" if is_vector(kind) else texts[0]

    def _list_lanes(self, constant: Operand) -> list[int]:
        size, lanes = self._module.size_of(lane_of(constant[0])), lanes_of(constant[0])
        content = self._encode(*constant).ljust(size * lanes, b"\0")
        lane_at = range(0, size * lanes, size)
        return [int.from_bytes(content[at : at + size], "little") for at in lane_at]

    def _signed(self, operand: Operand) -> str:
        name, text = self._type(operand[0], is_signed=True), self._operand(operand)
        return f"as_{name}({text})" if is_vector(operand[0]) else f"(({name}){text})"

    def _unsigned(self, kind: str, text: str) -> str:
        """Write what a vector's lanes are kept as; other numbers convert by themselves."""
        return f"as_{self._type(kind)}({text})" if is_vector(kind) else text

    def _move(self, operands: Sequence[Operand], kind: str) -> str:
        terms = [self._operand(operands[0])]
        for operand, size in self._module.list_steps(kind, operands[1:]):
            terms.append(f"{self._signed(operand)} * (long){size}" if operand else f"{size}")
        return f"({' + '.join(terms)})"

    def _at(self, operand: Operand, kind: str) -> str:
        name = _SPACES[number_space(operand[0])]
        return f"({self._type(kind)} {name} *)({self._operand(operand)})"

    # Statements

    def _write_statement(self, one: Instruction) -> None:
        name, body = self._names.get(one.name, ""), self._body
        if one.opcode in ("ret", "unreachable"):
            body.append("goto kc_end;")
        elif one.opcode in ("br", "switch"):
            self._jump(one)
        elif one.opcode == "call":
            self._call(one, name)
        elif one.opcode == "store":
            value, address = one.operands
            lanes, element = split_sequence(one.type) or (0, one.type)
            target, text = self._at(address, element), self._operand(value)
            body.append(f"vstore{lanes}({text}, 0, {target});" if lanes else f"*{target} = {text};")
        elif one.opcode == "insertelement":
            vector, value, index = one.operands
            stored = f"-{self._operand(value)}" if value[0] == "i1" else self._operand(value)
            body.append(f"{name} = {self._operand(vector)};")
            body.append(f"{self._element(name, one.type, index)} = {stored};")
        elif one.opcode == "phi":
            body.append(f"{name} = {name}_next;")
        elif one.opcode != "alloca":
            body.append(f"{name} = {self._value(one)};")

    def _jump(self, one: Instruction) -> None:
        # All at once where blocks meet: a phi may name another of its block, as it was before.
        phis = [phi for target in dict.fromkeys(one.labels)
                for phi in self._flow.blocks[target] if phi.opcode == "phi"]  # fmt: skip
        for phi in phis:
            value = self._operand(phi.operands[phi.labels.index(one.block)])
            self._body.append(f"{self._names[phi.name]}_next = {value};")
        ways = [f"goto {self._labels[target]};" for target in one.labels]
        if len(ways) == 1:
            self._body.append(ways[0])
        elif one.opcode == "br":
            self._body.append(f"if ({self._operand(one.operands[0])}) {ways[0]} else {ways[1]}")
        else:
            cases = " ".join(
                f"case {self._operand(case)}: {way}"
                for case, way in zip(one.operands[1:], ways[1:], strict=True)
            )
            self._body.append(
                f"switch ({self._operand(one.operands[0])}) {{ {cases} default: {ways[0]} }}"
            )

    def _element(self, vector: str, kind: str, index: Operand) -> str:
        if index[1].isdigit():
            return f"{vector}.s{int(index[1]):x}"
        return f"((__private {self._type(lane_of(kind))} *)&{vector})[{self._operand(index)}]"

    def _value(self, one: Instruction) -> str:
        opcode, operands = one.opcode, one.operands
        if opcode == "call":
            opcode = one.detail.removeprefix("llvm.").partition(".")[0]
        if opcode == "getelementptr":
            return self._move(operands, one.detail)
        if opcode in _SIGNED_FORMS:
            text = _SIGNED_FORMS[opcode].format(*map(self._signed, operands))
            return self._unsigned(one.type, text)
        texts = [self._operand(each) for each in operands if each[0] != "metadata"]
        if opcode in _FORMS:
            return _FORMS[opcode].format(*texts, kind=self._type(one.type))
        if one.opcode == "call":
            if opcode not in INTRINSICS or opcode in _OF_OTHER_OPERANDS:
                raise self._refuse(f"the function {one.detail}", one)
            return f"{INTRINSICS[opcode]}({', '.join(texts)})"
        if opcode == "load":
            if not is_vector(one.type):
                return f"*{self._at(operands[0], one.type)}"
            return f"vload{lanes_of(one.type)}(0, {self._at(operands[0], lane_of(one.type))})"
        if opcode in ("icmp", "fcmp"):
            found = self._compare(one, texts)
            return f"convert_char{lanes_of(one.type)}({found})" if is_vector(one.type) else found
        if opcode == "select" and not is_vector(operands[0][0]):
            return f"{texts[0]} ? {texts[1]} : {texts[2]}"
        if opcode == "select":
            whole = _SIGNED[f"i{8 * self._module.size_of(lane_of(one.type))}"]
            return (
                f"select({texts[2]}, {texts[1]}, convert_{whole}{lanes_of(one.type)}({texts[0]}))"
            )
        if opcode == "extractelement":
            found = self._element(texts[0], operands[0][0], operands[1])
            return f"({found} & 1)" if one.type == "i1" else found
        if opcode == "shufflevector":
            count = lanes_of(operands[0][0])
            chosen = self._list_lanes(operands[2])
            parts = (f"{texts[each >= count]}.s{each % count:x}" for each in chosen)
            return f"({self._type(one.type)})({', '.join(parts)})"
        return self._cast(one, texts[0])

    def _compare(self, one: Instruction, texts: list[str]) -> str:
        predicate, sides = one.detail, ", ".join(texts)
        if one.opcode == "icmp":
            left, right = map(self._signed, one.operands) if predicate[0] == "s" else texts
            return f"({left} {_COMPARED[predicate[-2:]]} {right})"
        if predicate in _UNORDERED:
            opposite = "~" if is_vector(one.type) else "!"
            return f"({opposite}{_ORDERED[_UNORDERED[predicate]]}({sides}))"
        if predicate not in _ORDERED:
            raise self._refuse(f"the comparison {predicate}", one)
        return f"{_ORDERED[predicate]}({sides})"

    def _cast(self, one: Instruction, text: str) -> str:
        opcode, before, kind = one.opcode, one.operands[0][0], one.type
        is_condition = lane_of(before) == "i1"
        if opcode == "bitcast":
            name = self._type(kind)
            return f"({name}){text}" if kind.startswith("ptr") else f"as_{name}({text})"
        if opcode == "trunc" and kind == "i1":
            return f"({text} & 1)"
        if opcode == "trunc" and is_vector(kind):
            bits = 8 * self._module.size_of(lane_of(kind))
            text = f"{text} & ({self._type(before)})({(1 << bits) - 1}ul)"
        elif opcode == "zext" and is_condition and is_vector(before):
            text = f"({text} & (char)1)"
        elif opcode == "sext" and is_condition and not is_vector(before):
            text = f"(-{text})"
        elif opcode in ("sext", "sitofp"):
            text = self._signed(one.operands[0])
        elif opcode not in ("trunc", "zext", "fptosi", "fptoui", "uitofp", "fpext", "fptrunc"):
            raise self._refuse(f"the instruction {opcode}", one)
        name = self._type(kind, is_signed=opcode in ("sext", "fptosi"))
        is_plain = not is_vector(kind)
        return f"(({name}){text})" if is_plain else self._unsigned(kind, f"convert_{name}({text})")

    def _call(self, one: Instruction, result: str) -> None:
        name = name_called(one)
        if _NOTHING.match(one.detail):
            if result:
                self._body.append(f"{result} = 0;")
            return
        if name.startswith("__translate_sampler"):
            self._program.append(f"__constant sampler_t {result} = {one.operands[0][1]};")
            return
        if one.detail.startswith(("llvm.memcpy", "llvm.memmove", "llvm.memset")):
            target, value, count = (self._operand(each) for each in one.operands[:3])
            value = value if one.detail.startswith("llvm.memset") else f"({value})[kc_j]"
            self._body.append(
                f"for (ulong kc_j = 0; kc_j < {count}; kc_j++) ({target})[kc_j] = {value};"
            )
            return
        if one.detail.startswith("llvm."):
            self._body.append(f"{result} = {self._value(one)};")
            return
        if one.detail in self._module.functions or name.startswith("__"):
            raise self._refuse(f"the call of {name}", one)
        try:
            types = read_types(mangled_types(one))
        except ValueError as error:
            raise self._refuse(f"the call of {name}", one) from error
        arguments = []
        for operand, kind in zip(one.operands, types, strict=False):
            text = self._operand(operand)
            if kind not in ("", "event_t"):
                as_is = is_vector(operand[0]) and not kind.endswith("*")
                text = f"as_{kind}({text})" if as_is else f"({kind})({text})"
            arguments.append(text)
        call = f"{name}({', '.join(arguments)})"
        self._body.append(f"{result} = {self._unsigned(one.type, call)};" if result else f"{call};")
