"""Builds programs on a device, tells a kernel's real signature, and keeps programs on disk.

PoCL, Mesa and NVIDIA's driver keep what they compile, as `kernelcast.compiling` does. Intel's
runtime for processors does not: its compiler takes 0.13 s for the first program of a process and
0.05 to 0.08 s for each further one, a stored one 3 ms. Its programs from binaries have no argument
information: the signatures that they had when they were built are kept beside them.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

from kernelcast.records.arguments import Parameter
from kernelcast.records.errors import CompileError, KernelNotFoundError
from kernelcast.records.kernel import Kernel, includes_files
from kernelcast.records.private_files import keep_among
from kernelcast.sampling.opencl import OtherDriver, cl
from kernelcast.sampling.prelude import mark_line

# Asked of the compiler so that parameters can be checked by name and type before anything runs.
ARGUMENT_INFO_OPTION = "-cl-kernel-arg-info"
_FORMAT = "kernelcast program 1"
_KEEP_THEMSELVES = frozenset({"Portable Computing Language", "rusticl", "NVIDIA CUDA", "CUDA"})
_LOG_LINES = 40


def build_program(
    context: cl.Context, device: cl.Device, source: str, options: tuple[str, ...]
) -> cl.Program:
    program = cl.Program(context, source)
    with warnings.catch_warnings():
        # pyopencl would take the program from its binary cache, and a program made from a binary
        # has no argument information; an early query makes it build from source.
        warnings.simplefilter("ignore")
        program.get_info(cl.program_info.REFERENCE_COUNT)
        try:
            program.build(options=list(options), devices=[device])
        except cl.Error as error:
            log = ""
            with suppress(cl.Error):
                log = read_build_log(program, device)
            lines = (log or str(error)).splitlines()
            more = len(lines) - _LOG_LINES
            msg = f"the compiler of {device.name.strip()} refused the source:\n"
            msg += "\n".join(lines[:_LOG_LINES]) + (f"\n... {more} more lines" if more > 0 else "")
            raise CompileError(msg) from error
    return program


def read_kernel_source(kernel: Kernel) -> tuple[str, tuple[str, ...]]:
    """Give the text and the options by which a kernel is built as it is."""
    text = mark_line(kernel.source_name) + kernel.source
    return text, (*kernel.build_options, ARGUMENT_INFO_OPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltKernel:
    program: cl.Program
    """Kept because some drivers drop a program whose last user handle is gone."""
    kernel: cl.Kernel
    parameters: tuple[Parameter, ...]
    """The signature; empty where nobody asked for argument information."""
    hidden_from: int | None = None
    """Place of the first argument that tells of the whole launch (`prelude.tell_launch`); None of
    one that takes none."""
    warmed: set[tuple[int, ...]] = field(default_factory=set, compare=False)
    """Local sizes with which it has run."""


def take_kernel(
    program: cl.Program, kernel: Kernel, *, parameters: tuple[Parameter, ...] | None = None
) -> BuiltKernel:
    compiled = get_kernel(program, kernel)
    return BuiltKernel(
        program=program,
        kernel=compiled,
        parameters=read_parameters(compiled) if parameters is None else parameters,
    )


def list_kernels(program: cl.Program) -> list[str]:
    listed = str(program.get_info(cl.program_info.KERNEL_NAMES))
    return [name for name in listed.split(";") if name]


def get_kernel(program: cl.Program, kernel: Kernel) -> cl.Kernel:
    names = list_kernels(program)
    if kernel.name not in names:
        have = ", ".join(sorted(names)) or "none"
        msg = f"kernel {kernel.name!r} is not in {kernel.source_name}; its kernels are: {have}"
        if f"_cl_{kernel.name}" in names:
            msg += f". OpenCL C has a function {kernel.name}, so the device's compiler renamed it"
        raise KernelNotFoundError(msg)
    return cl.Kernel(program, kernel.name)


def read_parameters(kernel: cl.Kernel) -> tuple[Parameter, ...]:
    if isinstance(kernel, OtherDriver):
        return tuple(cast("Any", kernel).parameters)
    info, qualifiers = cl.kernel_arg_info, cl.kernel_arg_address_qualifier
    spaces = ("global", "constant", "local", "private")
    names = {getattr(qualifiers, name.upper()): name for name in spaces}
    found = []
    for index in range(kernel.num_args):
        try:
            # pyopencl types every answer as object
            ask: Any = partial(kernel.get_arg_info, index)
            space = names[ask(info.ADDRESS_QUALIFIER)]
            is_const = bool(ask(info.TYPE_QUALIFIER) & cl.kernel_arg_type_qualifier.CONST)
            is_read = ask(info.ACCESS_QUALIFIER) == cl.kernel_arg_access_qualifier.READ_ONLY
            found.append(
                Parameter(
                    index=index,
                    name=str(ask(info.NAME)),
                    type_name=str(ask(info.TYPE_NAME)),
                    address_space=space,
                    is_const=is_const or is_read or space == "constant",
                )
            )
        except cl.Error:  # optional in the standard for some kinds of program
            found.append(Parameter(
                index=index, name="?", type_name="?", address_space="?", is_const=False,
                is_known=False,
            ))  # fmt: skip
    return tuple(found)


def read_build_log(program: cl.Program, device: cl.Device) -> str:
    log: str = program.get_build_info(device, cl.program_build_info.LOG)  # type: ignore[no-untyped-call]  # pyopencl leaves it untyped
    return log.strip()


def read_binary(program: cl.Program, device: cl.Device) -> bytes:
    """Give what the compiler made for one device; nothing where the driver does not give it."""
    try:
        # A caller's context may hold more devices; their binaries are listed side by side.
        devices = cast("list[cl.Device]", program.get_info(cl.program_info.DEVICES))
        binaries = cast("list[bytes]", program.get_info(cl.program_info.BINARIES))
    except cl.Error:
        return b""
    return dict(zip(devices, binaries, strict=True)).get(device, b"")


BuiltProgram: TypeAlias = tuple[cl.Program, float, Mapping[str, tuple[Parameter, ...]]]
"""With the host time that its compiler took, in seconds, now or when the program was stored; with
the signatures of its kernels where it was stored with them."""


def find_program(
    folder: Path | None,
    context: cl.Context,
    device: cl.Device,
    source: str,
    options: tuple[str, ...],
) -> BuiltProgram:
    """Take a program from a folder, if there is one, which processes may share; else build it."""
    path, platform = None, device.platform
    # Of files that a source includes the key does not hold the content.
    if folder and platform.name not in _KEEP_THEMSELVES and not includes_files(source, options):
        ids = (platform.name, platform.version, device.name, device.version, device.extensions)
        text = repr((_FORMAT, *ids, device.driver_version, source, options))
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.program"
        # None is taken that is not whole, or that the driver refuses.
        with suppress(OSError, ValueError, KeyError, TypeError, cl.Error):
            line, _, binary = path.read_bytes().partition(b"\n")
            held: dict[str, Any] = json.loads(line)
            if held["digest"] == hashlib.sha256(binary).hexdigest():
                program = cl.Program(context, [device], [binary])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the log of a build with nothing to compile
                    program.build(options=list(options), devices=[device])
                path.touch()
                signatures = {
                    name: tuple(Parameter(**one) for one in parameters)
                    for name, parameters in held["signatures"].items()
                }
                return program, float(held["build_s"]), signatures
    started_s = time.perf_counter()
    program = build_program(context, device, source, options)
    build_s = time.perf_counter() - started_s
    binary = b"" if path is None else read_binary(program, device)
    if path is not None and binary:
        names = list_kernels(program) if ARGUMENT_INFO_OPTION in options else ()
        head = {
            "digest": hashlib.sha256(binary).hexdigest(),
            "build_s": build_s,
            "signatures": {
                name: [asdict(one) for one in read_parameters(cl.Kernel(program, name))]
                for name in names
            },
        }
        with suppress(OSError):  # it is not kept then
            keep_among(path, json.dumps(head).encode() + b"\n" + binary, most=512)
    return program, build_s, {}
