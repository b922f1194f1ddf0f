"""Checks a launch's arguments against the kernel's real signature, before anything runs."""

import re
from collections.abc import Sequence

from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    ElementType,
    ImageArgument,
    LocalArgument,
    Parameter,
    SamplerArgument,
    ScalarArgument,
)
from kernelcast.records.errors import SignatureError

_BUFFER_SPACES = ("global", "constant")
_PIPE = re.compile(r"\bpipe\b")
_IMAGE = re.compile(r"image[123]d(_\w+)?_t")


def check_arguments(
    kernel_name: str, parameters: Sequence[Parameter], arguments: Sequence[Argument]
) -> None:
    """Check count, kinds and types of a problem's arguments; name all that do not fit."""
    for parameter in parameters:
        if _PIPE.search(parameter.type_name):
            raise SignatureError(
                f"kernel {kernel_name}: argument {parameter}: pipes cannot be given; have the "
                "kernel read and write buffers instead"
            )
    check_count(kernel_name, parameters, len(arguments))
    complaints = [
        complaint
        for parameter, argument in zip(parameters, arguments, strict=True)
        if parameter.is_known and (complaint := _complain(parameter, argument))
    ]
    if complaints:
        raise SignatureError(f"kernel {kernel_name}: " + "; ".join(complaints))


def is_image(parameter: Parameter) -> bool:
    return _IMAGE.fullmatch(parameter.type_name) is not None


def check_count(kernel_name: str, parameters: Sequence[Parameter], given: int) -> None:
    if len(parameters) != given:
        signature = ", ".join(str(parameter) for parameter in parameters)
        raise SignatureError(
            f"kernel {kernel_name}: {given} arguments given, {len(parameters)} expected: "
            f"{signature or 'none'}"
        )


def infer_access(parameter: Parameter, declared: Access | None) -> Access:
    """Tell what a kernel may do with a buffer: as declared, else by its type's const."""
    if declared is not None:
        return declared
    return Access.READ if parameter.is_const else Access.READ_WRITE


def _complain(parameter: Parameter, argument: Argument) -> str | None:
    space, is_pointer = parameter.address_space, parameter.type_name.endswith("*")
    wants_object = is_image(parameter) or parameter.type_name == "sampler_t"
    match argument:
        case ImageArgument() | SamplerArgument():
            given, fits = argument.type_name, parameter.type_name == argument.type_name
        case BufferArgument():
            given, fits = "a buffer", space in _BUFFER_SPACES and not wants_object
        case ScalarArgument():
            is_value = space == "private" and not is_pointer and not wants_object
            given, fits = "a scalar", is_value
        case LocalArgument():
            given, fits = "local memory", space == "local"
    wanted = ElementType.from_opencl(parameter.type_name.removesuffix("*"))
    if not fits:
        kind = f"scalar ({wanted or parameter.type_name})"
        if wants_object:
            kind = parameter.type_name
        elif space == "local":
            kind = "size of local memory (`local: BYTES`)"
        elif space in _BUFFER_SPACES:
            kind = "buffer"
        return f"argument {parameter}: {given} given; give a {kind}"
    if isinstance(argument, LocalArgument | SamplerArgument | ImageArgument):
        return None
    element, size_bytes = argument.element, parameter.value_bytes
    if isinstance(argument, BufferArgument):
        # Buffers of vectors may be filled as buffers of their lanes; structs are not known to us.
        if argument.count and wanted is not None and wanted.base != element.base:
            return f"argument {parameter}: a buffer of {element} given; give one of {wanted}"
        return None
    # Some drivers take any number of bytes for a structure, and run with what lies behind.
    advice = None
    if wanted is None and size_bytes not in (0, element.bytes):
        advice = f"; give all {size_bytes} bytes, as uint8x{size_bytes}"
    elif parameter.type_name.startswith("struct ") and element.base not in ("uint8", "int8"):
        advice = (
            " for a structure; give its bytes, all of them, as uint8xN, or have the kernel take it "
            "from a buffer"
        )
    elif wanted is not None and wanted != element:
        advice = f"; give {wanted}"
    return None if advice is None else f"argument {parameter}: {element} given{advice}"
