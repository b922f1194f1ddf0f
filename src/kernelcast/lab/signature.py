"""Checks a problem against the text of its source, before a process is started that compiles it."""

import re

from kernelcast.records.errors import KernelNotFoundError
from kernelcast.records.problem import Problem
from kernelcast.sampling.signature import Parameter, check_arguments

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
# With directives other than these a plain look at the text does not tell what is compiled.
_DIRECTIVE = re.compile(r"^\s*#\s*(?!pragma\s+(?:OPENCL|unroll)\b)", re.MULTILINE)
_KERNEL = re.compile(
    r"\b(?:__)?kernel\b\s*(?:__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*)*"
    r"void\s+(?:__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*)*(?P<name>\w+)\s*"
    r"\((?P<parameters>[^()]*)\)\s*\{"
)
_SPACE = re.compile(r"\b(?:__)?(global|constant|local|private)\b")
_QUALIFIER = re.compile(r"\b(?:(?:__)?(?:global|constant|local|private|restrict)|const|volatile)\b")
_VALUE = re.compile(
    r"(?:u?(?:char|short|int|long)|float|double|half)(?:2|3|4|8|16)?|unsigned(?: int)?|size_t"
)


def check_signature(problem: Problem) -> None:
    """Refuse a kernel that is not in its source, or arguments that do not fit it."""
    kernel = problem.kernel
    text = _COMMENT.sub(" ", kernel.source)
    options = " ".join(kernel.build_options)
    if _DIRECTIVE.search(text) or "-D" in options or "CLC++" in options:
        return
    found = {one["name"]: one["parameters"] for one in _KERNEL.finditer(text)}
    if kernel.name not in found:
        if found and re.search(rf"\b{re.escape(kernel.name)}\b", text) is None:
            have = ", ".join(sorted(found))
            msg = f"kernel {kernel.name!r} is not in {kernel.source_name}; its kernels are: {have}"
            raise KernelNotFoundError(msg)
        return
    listed = [one.strip() for one in found[kernel.name].split(",")]
    parts = [] if listed in ([""], ["void"]) else listed
    check_arguments(
        kernel.name,
        [_read_parameter(number, part) for number, part in enumerate(parts)],
        problem.arguments,
    )


def _read_parameter(index: int, text: str) -> Parameter:
    """Read a parameter, as far as its text tells what it is."""
    space = _SPACE.search(text)
    bare = " ".join(_QUALIFIER.sub(" ", text.replace("*", " * ")).split())
    kind, _, name = bare.rpartition(" ")
    stars = kind.count("*")
    value = kind.replace("*", "").strip()
    return Parameter(
        index=index,
        name=name,
        type_name=f"{value}*" if stars else value,
        address_space=space[1] if space and stars else "private",
        is_const="const" in text.split(),
        is_known=_VALUE.fullmatch(value) is not None and stars <= 1 and "[" not in text,
    )
