"""Which kernels compiled code defines, and what it says of their arguments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kernelcast.compiling.targets import CodeFormat, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A kernel's argument, as far as the code tells."""

    name: str | None = None
    type_name: str | None = None
    """As in the source."""
    address_space: str = "private"
    """``global``, ``local``, ``constant`` of a pointer; ``private`` of a value."""
    size_bytes: int | None = None
    """What a launch passes, in bytes."""
    alignment_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """A kernel that the code defines."""

    name: str
    arguments: tuple[Argument, ...]


_PTX_ENTRY: Final = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_PTX_PARAMETER: Final = re.compile(
    r"\.param\s+(?:\.align\s+(?P<alignment>\d+)\s+)?\.[a-z](?P<bits>\d+)"
    r"(?:\s+\.ptr(?:\s+\.(?P<space>\w+))?(?:\s+\.align\s+(?P<target_alignment>\d+))?)?"
    r"\s+[\w$]+(?:\[(?P<count>\d+)\])?"
)
_PTX_SPACES: Final = {"shared": "local", "const": "constant", "global": "global", None: "global"}
_IR_KERNEL: Final = re.compile(
    r"^define .*?spir_kernel void @([\w$.]+)\((.*)\).*?"
    r"!kernel_arg_addr_space !(\d+).*?!kernel_arg_type !(\d+)", re.MULTILINE,
)  # fmt: skip
_IR_NODE: Final = re.compile(r"^!(\d+) = !\{(.*)\}$", re.MULTILINE)
_IR_SPACES: Final = {"0": "private", "1": "global", "2": "constant", "3": "local", "4": "global"}
_X86_KERNEL: Final = re.compile(
    r"^\s*\.type\s+(?!\.L|__clang_ocl)([\w$.]+),@function", re.MULTILINE
)
# LibYAML takes 1 ms where Python takes 10.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_AMD_METADATA: Final = re.compile(r"^---\n(.*?)^\.\.\.", re.MULTILINE | re.DOTALL)


def read_amd_metadata(text: str) -> list[dict[str, Any]]:
    """Read what AMD's assembly notes on each kernel."""
    match = _AMD_METADATA.search(text)
    # Clang before 16 tags names that YAML could take for something else.
    return yaml.load(match[1].replace("!str ", ""), _LOADER)["amdhsa.kernels"] if match else []


def read_kernels(text: str, target: Target) -> tuple[CompiledKernel, ...]:
    """List the kernels of IR or assembly; x86 assembly tells names only, of any function."""
    if target.format is CodeFormat.PTX:
        return tuple(
            CompiledKernel(name=name, arguments=tuple(_read_ptx(parameters)))
            for name, parameters in _PTX_ENTRY.findall(text)
        )
    if target.format is CodeFormat.AMD:
        return tuple(
            CompiledKernel(name=kernel[".name"], arguments=tuple(_read_amd(kernel)))
            for kernel in read_amd_metadata(text)
        )
    if target.format is CodeFormat.IR:
        nodes = dict(_IR_NODE.findall(text))
        return tuple(
            CompiledKernel(name=match[1], arguments=tuple(_read_ir(match, nodes)))
            for match in _IR_KERNEL.finditer(text)
        )
    return tuple(CompiledKernel(name=name, arguments=()) for name in _X86_KERNEL.findall(text))


def _read_ptx(parameters: str) -> Iterator[Argument]:
    for match in _PTX_PARAMETER.finditer(parameters):
        is_pointer = ".ptr" in match[0]
        size = int(match["bits"]) // 8 * int(match["count"] or 1)
        yield Argument(
            address_space=_PTX_SPACES[match["space"]] if is_pointer else "private",
            size_bytes=size, alignment_bytes=int(match["alignment"] or min(size, 8)),
        )  # fmt: skip


def _read_amd(kernel: dict[str, Any]) -> Iterator[Argument]:
    for argument in kernel.get(".args", ()):
        if not argument[".value_kind"].startswith("hidden"):
            yield Argument(
                name=argument.get(".name"), type_name=argument.get(".type_name"),
                address_space=argument.get(".address_space", "private"),
                size_bytes=argument[".size"],
            )  # fmt: skip


def _read_ir(match: re.Match[str], nodes: dict[str, str]) -> Iterator[Argument]:
    spaces = re.findall(r"i32 (\d+)", nodes.get(match[3], ""))
    types = re.findall(r'!"([^"]*)"', nodes.get(match[4], ""))
    names = re.findall(r"%([\w.]+)(?=,|$)", match[2])
    for space, type_name, name in zip(spaces, types, names, strict=False):
        yield Argument(
            name=name, type_name=type_name, address_space=_IR_SPACES.get(space, "global")
        )
