"""Which kernels a source defines, what compiled code says of their arguments, and mangled names."""

import re
from dataclasses import dataclass
from typing import Final

from kernelcast.compiling.ir import read_module
from kernelcast.records.arguments import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    name: str
    parameters: tuple[Parameter, ...]
    required_local_size: tuple[int, ...]
    """Zeros where the source leaves that open."""


_IMPLEMENTATION: Final = "__clang_ocl_kern_imp_"
_VALUE: Final = re.compile(r'!"([^"]*)"|i32 (\d+)')
_SPACES: Final = {"0": "private", "1": "global", "2": "constant", "3": "local", "4": "global"}


def read_kernels(code: str) -> tuple[CompiledKernel, ...]:
    module = read_module(code)
    kernels = []
    for function in module.functions.values():
        notes = (
            module.notes.get(function.notes.get(f"kernel_arg_{kind}", -1), "")
            for kind in ("name", "type", "addr_space", "type_qual", "access_qual")
        )
        columns = [[word or digits for word, digits in _VALUE.findall(one)] for one in notes]
        if "kernel_arg_type" not in function.notes or function.name.startswith(_IMPLEMENTATION):
            continue
        pairs = zip(function.parameters, function.by_value, strict=True)
        sizes = [module.size_of(copied or kind) for (kind, _), copied in pairs]
        if len(sizes) != len(columns[0]):  # x86 takes structures in parts
            sizes = [0] * len(columns[0])
        parameters = tuple(
            Parameter(
                index=index, name=name, type_name=type_name, address_space=_SPACES[space],
                is_const="const" in qualifiers.split() or space == "2" or access == "read_only",
                value_bytes=size if space == "0" else 0,
            )
            for index, (size, name, type_name, space, qualifiers, access) in enumerate(
                zip(sizes, *columns, strict=True)
            )
        )  # fmt: skip
        kernels.append(CompiledKernel(
            name=function.name, parameters=parameters,
            required_local_size=module.required_local_size(function) or (0, 0, 0),
        ))  # fmt: skip
    return tuple(kernels)


_MANGLED: Final = re.compile(r"_Z(\d+)(.*)$")
_LETTERS: Final = {
    "v": "void", "b": "bool", "c": "char", "a": "char", "h": "uchar", "s": "short", "t": "ushort",
    "i": "int", "j": "uint", "l": "long", "m": "ulong", "x": "long", "y": "ulong", "f": "float",
    "d": "double", "Dh": "half",
}  # fmt: skip
_SPACE_NAMES: Final = ("__private", "__global", "__constant", "__local", "__generic")
_QUALIFYING: Final = {"V": "volatile", "K": "const"}
_QUALIFIERS: Final = re.compile(r"\b(?:__\w+|const|volatile|restrict) ")
# What clang makes of them before it looks for a library.
_LOWERED: Final = {
    "__translate_sampler_initializer": "sampler_t", "__printf_alloc": "printf",
    "__read_pipe": "read_pipe", "__write_pipe": "write_pipe",
}  # fmt: skip


def split_name(name: str) -> tuple[str, str]:
    """Split into the name in the source and how the types of parameters are written."""
    match = _MANGLED.match(name)
    if match is None:
        return name, ""
    length = int(match[1])
    return match[2][:length], match[2][length:]


def demangle(name: str) -> str:
    """Spell a built-in function as OpenCL C does, with its parameters where they are numbers."""
    base, mangled = split_name(name)
    if base == name:
        return next((spelt for start, spelt in _LOWERED.items() if name.startswith(start)), name)
    try:
        types = [_QUALIFIERS.sub("", one) for one in read_types(mangled)]
    except ValueError:
        return base
    return base if {"", "void"}.intersection(types) else f"{base}({', '.join(types)})"


def read_types(mangled: str) -> list[str]:
    """Read the types of a builtin's parameters (Itanium C++ ABI); empty for images and such."""
    place = 0
    seen: list[str] = []

    def accept(pattern: str) -> re.Match[str] | None:
        nonlocal place
        match = re.compile(pattern).match(mangled, place)
        place = match.end() if match else place
        return match

    def read() -> str:
        nonlocal place
        if match := accept(r"S(\w?)_"):
            return seen[int(match[1], 36) + 1 if match[1] else 0]
        if match := accept("Dh|[a-qs-z]"):
            return _LETTERS[match[0]]
        if match := accept(r"(?:U3AS\d|U7_Atomic|[VKr])+"):
            inner = f"atomic_{read()}" if "_Atomic" in match[0] else read()
            words = [word for letter, word in _QUALIFYING.items() if letter in match[0]]
            spaces = [_SPACE_NAMES[int(number)] for number in re.findall(r"AS(\d)", match[0])]
            found = " ".join((*words, *spaces, inner))
        elif accept("P"):
            found = f"{read()} *"
        elif match := accept(r"Dv(\d+)_"):
            found = f"{read()}{match[1]}"
        elif match := accept(r"\d+"):
            start, place = place, place + int(match[0])
            word = mangled[start:place]
            found = "event_t" if word == "ocl_event" else "" if word.startswith("ocl_") else word
        else:
            raise ValueError(f"no types of parameters: {mangled}")
        seen.append(found)
        return found

    types = []
    try:
        while place < len(mangled):
            types.append(read())
    except (KeyError, IndexError) as error:
        raise ValueError(f"no types of parameters: {mangled}") from error
    return types
