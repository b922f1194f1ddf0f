"""Builds programs on a device and tells a kernel's real signature."""

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from kernelcast.records.errors import CompileError, KernelNotFoundError
from kernelcast.records.kernel import Kernel
from kernelcast.sampling.opencl import OtherDriver, cl
from kernelcast.sampling.prelude import mark_line
from kernelcast.sampling.signature import Parameter

# Asked of the compiler so that parameters can be checked by name and type before anything runs.
ARGUMENT_INFO_OPTION = "-cl-kernel-arg-info"
_LOG_LINES = 40
_SPACES = ("GLOBAL", "CONSTANT", "LOCAL", "PRIVATE")
_UNKNOWN = Parameter(
    index=0, name="?", type_name="?", address_space="?", is_const=False, is_known=False
)


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
    """A kernel built for a device, with its signature."""

    program: cl.Program
    """Kept because some drivers drop a program whose last user handle is gone."""
    kernel: cl.Kernel
    """The kernel; its arguments are set by one launch at a time."""
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
    """Take a kernel out of a program, with its signature where that is not known better than the
    program tells."""
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
    info, spaces = cl.kernel_arg_info, cl.kernel_arg_address_qualifier
    found = []
    for index in range(kernel.num_args):
        try:
            # pyopencl types every answer as object
            ask: Any = partial(kernel.get_arg_info, index)
            space = ask(info.ADDRESS_QUALIFIER)
            is_const = bool(ask(info.TYPE_QUALIFIER) & cl.kernel_arg_type_qualifier.CONST)
            is_read = ask(info.ACCESS_QUALIFIER) == cl.kernel_arg_access_qualifier.READ_ONLY
            found.append(
                Parameter(
                    index=index,
                    name=str(ask(info.NAME)),
                    type_name=str(ask(info.TYPE_NAME)),
                    address_space=next(
                        one.lower() for one in _SPACES if getattr(spaces, one) == space
                    ),
                    is_const=is_const or is_read or space == spaces.CONSTANT,
                )
            )
        except cl.Error:  # optional in the standard for some kinds of program
            found.append(replace(_UNKNOWN, index=index))
    return tuple(found)


def read_build_options(program: cl.Program, device: cl.Device) -> list[str]:
    options: str = program.get_build_info(device, cl.program_build_info.OPTIONS)  # type: ignore[no-untyped-call]  # pyopencl leaves it untyped
    return options.split()


def read_build_log(program: cl.Program, device: cl.Device) -> str:
    """Give what the compiler wrote, without surrounding blank space."""
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
