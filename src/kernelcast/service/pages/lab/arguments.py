"""Lines of arguments to begin with, made of what a kernel takes."""

import re
from collections.abc import Iterator
from typing import Final

from kernelcast.expressions.kernel_facts import ParameterFacts
from kernelcast.lab.source import SourceKernel
from kernelcast.records.operations import MemorySpace

_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|restrict|__restrict|__?(?:global|local|constant|private|generic)|global"
    r"|local|constant|private|generic)\b|\*"
)
_VECTOR = re.compile(r"(?P<base>[a-z_]+?)(?P<lanes>2|3|4|8|16)?")
_ELEMENTS: Final = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32",
    "uint": "uint32", "long": "int64", "ulong": "uint64", "half": "float16", "float": "float32",
    "double": "float64", "unsigned int": "uint32", "unsigned": "uint32", "size_t": "uint64",
    "unsigned char": "uint8", "unsigned long": "uint64", "bool": "uint8",
}  # fmt: skip
_USUAL_LOCAL_BYTES: Final = 4096


def propose_arguments(kernel: SourceKernel, items: int) -> str:
    """Write a line per argument: buffers of as many elements as work-items."""
    return "\n".join(_propose(kernel, items))


def _propose(kernel: SourceKernel, items: int) -> Iterator[str]:
    for one in kernel.parameters:
        element = _name_element(one)
        if one.is_pointer and one.space is MemorySpace.LOCAL:
            yield f"local: {_USUAL_LOCAL_BYTES}"
        elif one.is_pointer:
            init = "uniform" if one.is_read else "zeros"
            yield f"buffer: {element}, count: {items}, init: {init}"
        else:
            value = "1.0" if element.startswith("float") else str(items)
            yield f"scalar: {element}, value: {value}"


def _name_element(parameter: ParameterFacts) -> str:
    """Give the element type as problem files call it.

    Examples
    --------
    >>> one = ParameterFacts(
    ...     name="a", type_name="const __global float4 *restrict __private",
    ...     space=MemorySpace.GLOBAL, is_pointer=True, is_const=True, is_restrict=True,
    ...     is_volatile=False, element_bytes=16, is_read=True, is_written=False)
    >>> _name_element(one)
    'float32x4'
    """
    bare = " ".join(_QUALIFIERS.sub(" ", parameter.type_name).split())
    if bare in _ELEMENTS:
        return _ELEMENTS[bare]
    match = _VECTOR.fullmatch(bare)
    if match is not None and match["base"] in _ELEMENTS and match["lanes"]:
        return f"{_ELEMENTS[match['base']]}x{match['lanes']}"
    return "float32"  # a structure, for instance: a person knows better
