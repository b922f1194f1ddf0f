"""Names of functions in compiled code, as OpenCL C spells them."""

import re
from collections.abc import Iterator
from typing import Final

from kernelcast.compiling.targets import CodeFormat, Target

_EXTERN: Final = re.compile(r"^\.extern \.func\s+(?:\([^)]*\)\s*)?([\w$.]+)", re.MULTILINE)
_AMD_REFERENCE: Final = re.compile(r"\b([\w$.]+)@(?:gotpc)?rel32@lo")
_AMD_LABEL: Final = re.compile(r"^([\w$.]+):", re.MULTILINE)
_OF_THE_DRIVER: Final = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_NAME: Final = re.compile(r"_Z(\d+)(.+)")
_SCALARS: Final = {
    "c": "char", "h": "uchar", "s": "short", "t": "ushort", "i": "int", "j": "uint", "l": "long",
    "m": "ulong", "f": "float", "d": "double", "Dh": "half", "b": "bool",
}  # fmt: skip
_PARAMETER: Final = re.compile(r"(P?)(?:U\d+\w+?)?[VK]*(?:Dv(\d+)_)?(Dh|[chstijlmfdb])")


def find_missing_builtins(text: str, target: Target) -> list[str]:
    """Find the functions that assembly for a GPU calls and does not hold."""
    names: Iterator[str] = iter(())
    if target.format is CodeFormat.PTX:
        names = (match[1] for match in _EXTERN.finditer(text))
    elif target.format is CodeFormat.AMD:
        defined = set(_AMD_LABEL.findall(text))
        names = (one for one in _AMD_REFERENCE.findall(text) if one not in defined)
    return sorted({demangle(name) for name in names if name not in _OF_THE_DRIVER})


def demangle(name: str) -> str:
    """Spell a built-in function as OpenCL C does, with its parameters where they are numbers.

    Examples
    --------
    >>> demangle("_Z3sinDv4_f"), demangle("_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i")
    ('sin(float4)', 'read_imagef')
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return name
    length = int(match[1])
    base, rest = match[2][:length], match[2][length:]
    parameters = []
    while rest:
        found = _PARAMETER.match(rest)
        if found is None:
            return base
        scalar = _SCALARS[found[3]]
        parameters.append(f"{scalar}{found[2] or ''}{' *' if found[1] else ''}")
        rest = rest[found.end() :]
    return f"{base}({', '.join(parameters)})"
