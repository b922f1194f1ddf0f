"""Which kernels a source defines, and what compiled code says of their arguments."""

import re
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml

from kernelcast.compiling.targets import CodeFormat, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    name: str = ""
    type_name: str = ""
    address_space: str = "private"
    """``global``, ``local``, ``constant`` of a pointer; ``private`` of a value."""
    is_const: bool = False
    """Whether what a pointer points to, or an image, is only read."""
    size_bytes: int | None = None
    """What a launch passes, in bytes; PTX and AMD assembly tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    name: str
    arguments: tuple[Argument, ...]
    required_local_size: tuple[int, ...] = (0, 0, 0)
    """Zeros where the source leaves that open."""


_KERNEL: Final = re.compile(
    r"^define [^@]*@(?!__clang_ocl_kern_imp_)([\w$.]+)\((.*)\).*!kernel_arg_addr_space .*$",
    re.MULTILINE,
)
_ATTACHED: Final = re.compile(r"!(\w+) !(\d+)")
_NODE: Final = re.compile(r"^!(\d+) = !\{(.*)\}$", re.MULTILINE)
_VALUE: Final = re.compile(r'!"([^"]*)"|i32 (\d+)')
_SPACES: Final = {"0": "private", "1": "global", "2": "constant", "3": "local", "4": "global"}
_PTX_ENTRY: Final = r"\.entry\s+{}\s*\(([^)]*)\)"
_PTX_PARAMETER: Final = re.compile(r"\.param\s[^,]*?\.[a-z](\d+)\s[^,\[]*(?:\[(\d+)\])?")
# LibYAML takes 1 ms where Python takes 10.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_AMD_METADATA: Final = re.compile(r"^---\n(.*?)^\.\.\.", re.MULTILINE | re.DOTALL)


def read_kernels(code: str, text: str, target: Target) -> tuple[CompiledKernel, ...]:
    """List the kernels of the front end's code, with sizes of arguments from the target's text."""
    nodes = {
        number: [word or digits for word, digits in _VALUE.findall(listed)]
        for number, listed in _NODE.findall(code)
    }
    kernels = []
    for kernel in _KERNEL.finditer(code):
        name, parameters = kernel[1], kernel[2]
        held = {key: nodes.get(number, []) for key, number in _ATTACHED.findall(kernel[0])}
        kinds = ("type", "addr_space", "type_qual", "access_qual")
        sizes = _read_sizes(name, text, target)
        arguments = [
            Argument(
                name=argument, type_name=type_name, address_space=_SPACES[space],
                is_const="const" in qualifiers.split() or space == "2" or access == "read_only",
            )
            for argument, type_name, space, qualifiers, access in zip(
                re.findall(r"%([\w.]+)(?=,|$)", parameters),
                *(held.get(f"kernel_arg_{kind}", ()) for kind in kinds), strict=False,
            )
        ]  # fmt: skip
        required = tuple(map(int, held.get("reqd_work_group_size", (0, 0, 0))))
        if len(sizes) == len(arguments):
            arguments = [
                replace(argument, size_bytes=size)
                for argument, size in zip(arguments, sizes, strict=True)
            ]
        kernels.append(
            CompiledKernel(name=name, arguments=tuple(arguments), required_local_size=required)
        )
    return tuple(kernels)


def _read_sizes(kernel: str, text: str, target: Target) -> list[int]:
    if target.format is CodeFormat.PTX:
        entry = re.search(_PTX_ENTRY.format(re.escape(kernel)), text)
        found = _PTX_PARAMETER.findall(entry[1]) if entry else []
        return [int(bits) // 8 * int(count or 1) for bits, count in found]
    if target.format is CodeFormat.AMD:
        noted = next((one for one in read_amd_metadata(text) if one[".name"] == kernel), {})
        return [
            argument[".size"] for argument in noted.get(".args", ())
            if not argument[".value_kind"].startswith("hidden")
        ]  # fmt: skip
    return []


def read_amd_metadata(text: str) -> list[dict[str, Any]]:
    match = _AMD_METADATA.search(text)
    # Clang before 16 tags names that YAML could take for something else.
    return yaml.load(match[1].replace("!str ", ""), _LOADER)["amdhsa.kernels"] if match else []
