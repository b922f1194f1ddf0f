"""Arguments as the caller holds them: NumPy arrays and scalars, and what pyopencl has."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import (
    Argument,
    BufferArgument,
    ElementType,
    LocalArgument,
    ScalarArgument,
    make_scalar,
)
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.contents import make_array

if TYPE_CHECKING:  # pyopencl is loaded where it is needed
    from kernelcast.launches.live import Launch

Array = npt.NDArray[Any]
HostValue = Array | np.generic | LocalArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class HostArguments:
    """A launch's arguments with their values."""

    described: tuple[Argument, ...]
    values: tuple[HostValue, ...]
    """Buffers are contiguous arrays, which take the results."""

    @property
    def buffers(self) -> dict[int, Array]:
        pairs = zip(self.described, self.values, strict=True)
        return {
            index: value
            for index, (described, value) in enumerate(pairs)
            if isinstance(described, BufferArgument) and isinstance(value, np.ndarray)
        }


def read_host_arguments(
    values: Sequence[Any], elements: Mapping[int, ElementType] | None = None
) -> HostArguments:
    held = []
    for one in values:
        is_structured = isinstance(one, np.ndarray) and bool(one.dtype.fields)
        if is_structured and one.flags.c_contiguous:  # as bytes, in the caller's own memory
            one = one.reshape(-1).view(np.uint8) if one.ndim else one[()]
        held.append(one)
    described = tuple(
        _describe(index, value, (elements or {}).get(index)) for index, value in enumerate(held)
    )
    found = HostArguments(described=described, values=tuple(held))
    buffers = list(found.buffers.items())
    for place, (index, array) in enumerate(buffers):
        for other, earlier in buffers[:place]:
            if np.may_share_memory(array, earlier):
                raise InputError(
                    f"arguments {other} and {index} share memory; each device works on copies of "
                    "its own, so give arrays that lie apart"
                )
    return found


def make_host_arguments(problem: Problem, *, seed: int) -> HostArguments:
    values: list[HostValue] = []
    for index, argument in enumerate(problem.arguments):
        match argument:
            case BufferArgument():
                values.append(make_array(argument, seed=seed * 1000 + index))
            case ScalarArgument():
                values.append(make_scalar(argument))
            case LocalArgument():
                values.append(argument)
    return HostArguments(described=problem.arguments, values=tuple(values))


def _describe(index: int, value: object, wanted: ElementType | None) -> Argument:
    if isinstance(value, LocalArgument):
        return value
    if isinstance(value, np.void):
        if wanted is not None and wanted.bytes == value.nbytes:
            lanes = np.frombuffer(value.tobytes(), dtype=wanted.dtype)[: wanted.lanes]
            return ScalarArgument(element=wanted, values=tuple(lanes.tolist()))
        return ScalarArgument(
            element=ElementType("uint8", value.nbytes), values=tuple(value.tobytes())
        )
    if isinstance(value, np.generic):
        return ScalarArgument(element=_element(index, value.dtype), values=(value.item(),))
    if not isinstance(value, np.ndarray):
        raise InputError(
            f"argument {index}: {type(value).__name__} given; give a NumPy array for a buffer, a "
            "NumPy scalar such as numpy.int32(7), or kernelcast's LocalArgument for local memory"
        )
    if not value.flags.c_contiguous:
        msg = f"argument {index}: the array is not contiguous; give numpy.ascontiguousarray(...)"
        raise InputError(msg)
    element = _element(index, value.dtype)
    if not value.flags.writeable and value.ndim == 1 and value.size in (2, 3, 4, 8, 16):
        element = ElementType(element.base, value.size)
        return ScalarArgument(element=element, values=tuple(value.tolist()))
    if not value.size:
        raise InputError(f"argument {index}: the array is empty; give at least one element")
    return BufferArgument(element=element, count=value.size)


def _element(index: int, dtype: np.dtype[Any]) -> ElementType:
    try:
        return ElementType.parse(dtype.name)
    except InputError as error:
        raise InputError(f"argument {index}: {error}") from error


def copy_launch(
    kernel: "Kernel | Launch", ndrange: NDRange | Sequence[int], args: Sequence[Any]
) -> tuple[Kernel, NDRange | Sequence[int], HostArguments, Callable[[Iterable[int]], None]]:
    """Copy what buffers of pyopencl hold; the last result copies some of them back."""
    from kernelcast.launches.live import Launch, describe_live
    from kernelcast.launches.source_check import list_parameters
    from kernelcast.sampling.user_objects import copy_to_host, list_arguments

    if isinstance(kernel, Launch):
        problem = describe_live(kernel).problem
        kernel.queue.finish()
        args = list_arguments(kernel.args)
        kernel, ndrange = problem.kernel, problem.ndrange
    types = (one.type_name.rstrip("* ") for one in list_parameters(kernel) or ())
    named = {number: ElementType.from_opencl(one) for number, one in enumerate(types)}
    elements = {number: element for number, element in named.items() if element}
    values, write_back = copy_to_host(args, elements)
    return kernel, ndrange, read_host_arguments(values, elements), write_back
