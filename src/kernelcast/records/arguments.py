"""What a kernel is called with, described without a device."""

import builtins
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError

_SCALARS = {
    f"{kind}{bits}": np.dtype(f"{kind}{bits}")
    for kind, widths in (("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64)),
                         ("float", (16, 32, 64)))
    for bits in widths
}  # fmt: skip
_VECTOR_LANES = (1, 2, 3, 4, 8, 16)
# OpenCL C's own names, as a kernel's signature shows them.
_OPENCL_NAMES = {
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16",
    "int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64",
    "half": "float16", "float": "float32", "double": "float64", "bool": "uint8", "size_t": "uint64",
}  # fmt: skip
_TYPE = re.compile(r"(?P<base>[a-z_]+?(?:8|16|32|64)?)(?:x(?P<lanes>\d+))?")
_OPENCL_TYPE = re.compile(r"(?P<base>[a-z_]+)(?P<lanes>\d*)")


@dataclass(frozen=True, slots=True)
class ElementType:
    """Type of a buffer's element or of a scalar: a base type and its vector lanes."""

    base: str
    lanes: int = 1

    @classmethod
    def parse(cls, text: str) -> "ElementType":
        """Read ``float32``, ``int8x16``, OpenCL's own names, or a structure: ``uint8x24``."""
        match = _TYPE.fullmatch(text)
        if match and match["base"] in _SCALARS:
            lanes = int(match["lanes"] or 1)
            # Bytes may be any number of them: a structure's.
            if lanes in _VECTOR_LANES or (match["base"] in {"int8", "uint8"} and lanes > 0):
                return cls(match["base"], lanes)
        found = cls.from_opencl(text)
        if found is None:
            names = ", ".join(_SCALARS)
            raise InputError(
                f"element type {text!r} is unknown; use {names}, a vector such as float32x4, or "
                "the bytes of a structure such as uint8x24"
            )
        return found

    @classmethod
    @lru_cache(maxsize=1024)
    def from_opencl(cls, text: str) -> "ElementType | None":
        """Read OpenCL C's name of a type, such as ``float4``; None for structs and the like."""
        match = _OPENCL_TYPE.fullmatch(text.replace("unsigned ", "u").strip())
        if not match or match["base"] not in _OPENCL_NAMES:
            return None
        lanes = int(match["lanes"] or 1)
        return cls(_OPENCL_NAMES[match["base"]], lanes) if lanes in _VECTOR_LANES else None

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return _SCALARS[self.base]

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest value; infinite for floating point."""
        if self.dtype.kind == "f":
            return -math.inf, math.inf
        limits = np.iinfo(self.base)
        return limits.min, limits.max

    @property
    def stored_lanes(self) -> int:
        """Lanes in memory: three-lane vectors take the room of four (OpenCL C 6.1.5)."""
        return 4 if self.lanes == 3 else self.lanes

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize * self.stored_lanes

    def __str__(self) -> str:
        return self.base if self.lanes == 1 else f"{self.base}x{self.lanes}"


class Access(StrEnum):
    READ = "read"
    """Only loads: the buffer needs no copy while the kernel is sampled."""
    WRITE = "write"
    READ_WRITE = "read_write"
    """Loads and stores, or unknown."""


class Init(StrEnum):
    ZEROS = "zeros"
    ONES = "ones"
    UNIFORM = "uniform"
    NORMAL = "normal"
    ARANGE = "arange"
    PERMUTATION = "permutation"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferArgument:
    """A global or constant buffer, by the recipe of its content."""

    element: ElementType
    count: int
    """Number of elements; 0 is a pointer that is NULL."""
    init: Init = Init.ZEROS
    low: float | None = None
    high: float | None = None
    """Range of `Init.UNIFORM`; numbers are drawn from [low, high)."""
    access: Access | None = None
    """What the kernel does with it; None means: find out."""
    path: Path | None = None
    data: builtins.bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.data is not None and len(self.data) != self.bytes:
            raise InputError(f"init: {len(self.data):,} bytes given, the buffer has {self.bytes:,}")
        if self.init is not Init.UNIFORM:
            if not (self.low is None and self.high is None):
                msg = "`low` and `high` are the range of `init: uniform`; remove them or use it"
                raise InputError(msg)
            return
        low, high = self.uniform_range
        least, greatest = self.element.limits
        is_float = self.element.dtype.kind == "f"
        fault = ""
        if not (math.isfinite(low) and math.isfinite(high)):
            fault = f"low {low} and high {high} are no range; give finite numbers"
        elif low < least:
            fault = f"low {low} does not fit {self.element}; give at least {least}"
        elif high > greatest + 1:
            fault = f"high {high} does not fit {self.element}; give at most {greatest + 1}"
        elif low >= high and not (is_float and self.high is None):
            usual = " (the default)" if self.high is None else ""
            fault = f"low {low} is not below high {high}{usual}; give a greater high"
        elif not is_float and math.ceil(low) >= math.ceil(high):
            fault = (
                f"no whole number is at least {low} and below {high}; {self.element} needs one: "
                "give a wider range"
            )
        if fault:
            raise InputError(fault)

    @property
    def bytes(self) -> int:
        return self.count * self.element.bytes

    @property
    def uniform_range(self) -> tuple[float, float]:
        """Least value of `Init.UNIFORM` and the bound above it, defaults filled in."""
        low = 0 if self.low is None else self.low
        if self.high is not None:
            return low, self.high
        is_float = self.element.dtype.kind == "f"
        return low, low + 1 if is_float else min(256, self.element.limits[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageArgument(BufferArgument):
    """An image, by the recipe of its content; an element is a pixel."""

    size: tuple[int, ...]
    """Pixels along each of one to three axes, width first."""
    layers: int = 0
    """Of an image array; 0 of a single image."""
    order: str
    channel: str
    """As OpenCL names channels, in lower case: ``rgba``, ``unorm_int8``."""

    @property
    def type_name(self) -> str:
        return f"image{len(self.size)}d{'_array' if self.layers else ''}_t"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerArgument:
    filter: str
    """``nearest`` or ``linear``."""
    address: str
    """Beyond the image: ``none``, ``clamp``, ``clamp_to_edge``, ``repeat``, ``mirrored_repeat``."""
    normalized: bool

    @property
    def type_name(self) -> str:
        return "sampler_t"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBuffer(BufferArgument):
    """A buffer of the caller's, which is there already, with content of no known recipe."""

    digest: str = ""
    """Tells contents apart where the kernel's work depends on them; empty where it does not."""
    read: Callable[[], npt.NDArray[np.generic]] | None = field(
        default=None, repr=False, compare=False
    )
    """Gives the content, of any element type; None where it cannot be had cheaply."""
    overlaps: tuple[tuple[int, int], ...] = ()
    """Positions of earlier arguments that share its memory, and how many bytes later it begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArgument:
    """A scalar or vector passed by value; `values` holds one number per lane."""

    element: ElementType
    values: tuple[int | float, ...]

    def __post_init__(self) -> None:
        low, high = self.element.limits
        for value in self.values:
            if value < low or value > high:
                msg = f"value {value} does not fit {self.element} ({low} to {high})"
                raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalArgument:
    """Local memory that the host sizes, in bytes per work-group."""

    bytes: int


Argument = BufferArgument | ScalarArgument | LocalArgument | SamplerArgument


def make_scalar(argument: ScalarArgument) -> npt.NDArray[np.generic] | np.generic:
    """Make the NumPy value that a scalar argument stands for."""
    element = argument.element
    if element.lanes == 1:
        value: np.generic = element.dtype.type(argument.values[0])
        return value
    stored = np.zeros(element.stored_lanes, dtype=element.dtype)
    stored[: element.lanes] = argument.values
    return stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    index: int
    name: str
    type_name: str
    """Without qualifiers; ``float*`` for a pointer."""
    address_space: str
    """``global``, ``constant``, ``local`` or ``private``."""
    is_const: bool
    """Whether the pointed-to data, or the image, may not be written."""
    is_known: bool = True
    """False where neither driver nor source tell: then nothing can be checked."""
    value_bytes: int = 0
    """Of a value, a structure's too; 0 where the source does not tell, and for pointers."""

    def __str__(self) -> str:
        space = "" if self.address_space == "private" else f"{self.address_space} "
        const = "const " if self.is_const else ""
        return f"{self.index} ({space}{const}{self.type_name} {self.name})"
