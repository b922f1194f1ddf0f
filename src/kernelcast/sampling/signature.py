"""Checks a launch's arguments against the kernel's real signature, before anything runs."""

import re
from collections.abc import Sequence

from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    ElementType,
    LocalArgument,
    ScalarArgument,
)
from kernelcast.records.errors import SignatureError
from kernelcast.sampling.parameters import Parameter

_BUFFER_SPACES = ("global", "constant")
_BYTES = ("uint8", "int8")
_IMAGE = re.compile(r"image[123]d(_\w+)?_t")


def check_arguments(
    kernel_name: str, parameters: Sequence[Parameter], arguments: Sequence[Argument]
) -> None:
    """Check count, kinds and types of a problem's arguments.

    Raises
    ------
    SignatureError
        If they do not fit; collects every argument that does not.
    """
    for parameter in parameters:
        if is_image(parameter) or parameter.type_name == "sampler_t":
            msg = (
                f"kernel {kernel_name}: argument {parameter}: images and samplers can only be "
                "given as pyopencl objects, by a program that calls kernelcast.estimate"
            )
            raise SignatureError(msg)
    check_count(kernel_name, parameters, len(arguments))
    complaints = [
        complaint
        for parameter, argument in zip(parameters, arguments, strict=True)
        if parameter.is_known and (complaint := _complain(parameter, argument))
    ]
    if complaints:
        msg = f"kernel {kernel_name}: " + "; ".join(complaints)
        raise SignatureError(msg)


def is_image(parameter: Parameter) -> bool:
    """Tell whether a parameter takes an image."""
    return _IMAGE.fullmatch(parameter.type_name) is not None


def check_count(kernel_name: str, parameters: Sequence[Parameter], given: int) -> None:
    """Check the number of arguments."""
    if len(parameters) != given:
        signature = ", ".join(str(parameter) for parameter in parameters)
        msg = (
            f"kernel {kernel_name}: {given} arguments given, {len(parameters)} expected: "
            f"{signature or 'none'}"
        )
        raise SignatureError(msg)


def infer_access(parameter: Parameter, declared: Access | None) -> Access:
    """Tell what a kernel may do with a buffer: as declared, else by its type's const."""
    if declared is not None:
        return declared
    return Access.READ if parameter.is_const else Access.READ_WRITE


def _complain(parameter: Parameter, argument: Argument) -> str | None:
    match argument:
        case BufferArgument():
            return _complain_about_buffer(parameter, argument)
        case ScalarArgument():
            return _complain_about_scalar(parameter, argument)
        case LocalArgument():
            if parameter.address_space != "local":
                return f"argument {parameter}: local memory given; give a {_kind_of(parameter)}"
            return None


def _complain_about_buffer(parameter: Parameter, argument: BufferArgument) -> str | None:
    if parameter.address_space not in _BUFFER_SPACES:
        return f"argument {parameter}: a buffer given; give a {_kind_of(parameter)}"
    wanted = ElementType.from_opencl(parameter.type_name.removesuffix("*"))
    # Buffers of vectors may be filled as buffers of their lanes; structs are not known to us.
    if wanted is not None and wanted.base != argument.element.base:
        return f"argument {parameter}: a buffer of {argument.element} given; give one of {wanted}"
    return None


def _complain_about_scalar(parameter: Parameter, argument: ScalarArgument) -> str | None:
    if parameter.address_space != "private" or parameter.type_name.endswith("*"):
        return f"argument {parameter}: a scalar given; give a {_kind_of(parameter)}"
    wanted = ElementType.from_opencl(parameter.type_name)
    # Some drivers take any number of bytes for a structure, and run with what lies behind.
    if wanted is None and parameter.value_bytes not in (0, argument.element.bytes):
        return (
            f"argument {parameter}: {argument.element} given; give all {parameter.value_bytes} "
            f"bytes, as uint8x{parameter.value_bytes}"
        )
    if parameter.type_name.startswith("struct ") and argument.element.base not in _BYTES:
        return (
            f"argument {parameter}: {argument.element} given for a structure; give its bytes, "
            "all of them, as uint8xN, or have the kernel take it from a buffer"
        )
    if wanted is not None and wanted != argument.element:
        return f"argument {parameter}: {argument.element} given; give {wanted}"
    return None


def _kind_of(parameter: Parameter) -> str:
    if parameter.address_space == "local":
        return "size of local memory (`local: BYTES`)"
    if parameter.address_space in _BUFFER_SPACES:
        return "buffer"
    return f"scalar ({ElementType.from_opencl(parameter.type_name) or parameter.type_name})"
