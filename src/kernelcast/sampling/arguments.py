"""Arguments of problems: checked against the kernel's real signature, before anything runs; their
buffers filled as recipes say, at the speed of memory.
"""

import math
import os
import re
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    ElementType,
    ImageArgument,
    Init,
    LocalArgument,
    Parameter,
    SamplerArgument,
    ScalarArgument,
)
from kernelcast.records.errors import InputError, SignatureError

Array = npt.NDArray[Any]

RANDOM_PERIOD = 16_777_213
"""Random contents repeat after so many numbers: to draw 500 million takes longer than all launches
on them. A prime, so that no stride of a kernel meets the same values again."""
# Whole numbers in a row are made in pieces that stay in a core's cache until they are converted.
_PIECE = 1 << 16
# What one thread fills before it takes another piece, in base types.
_FILLED_AT_ONCE = 1 << 20
_RANDOM = frozenset({Init.UNIFORM, Init.NORMAL})

_drawn: LRUCache[tuple[object, ...], Array] = LRUCache(256 << 20, getsizeof=lambda a: a.nbytes)
_drawn_lock = threading.Lock()
_drawing: defaultdict[tuple[object, ...], threading.Lock] = defaultdict(threading.Lock)
"""Who wants the same numbers waits for them."""


def shape_of(argument: BufferArgument) -> tuple[int, ...]:
    """Give the shape of a buffer as an array of base types: vectors have a second axis."""
    lanes = argument.element.stored_lanes
    return (argument.count,) if lanes == 1 else (argument.count, lanes)


def make_array(argument: BufferArgument, *, seed: int) -> Array:
    dtype = argument.element.dtype
    if argument.init is Init.FILE:
        return _load(argument)
    if argument.init is Init.ZEROS:
        return np.zeros(shape_of(argument), dtype=dtype)
    array = np.empty(shape_of(argument), dtype=dtype)
    fill_ranges([FillOrder((argument, seed), array)])
    return array


Recipe = tuple[BufferArgument, int]
"""How a buffer is filled, and the seed."""


class FillOrder(NamedTuple):
    recipe: Recipe
    array: Array
    """Contiguous, of the recipe's type; its part from the start on that is the recipe's counts."""
    begin: int = 0
    end: int | None = None
    """Which elements are filled; all behind `begin` where there is no end."""


def fill_ranges(orders: Sequence[FillOrder]) -> None:
    places: list[tuple[FillOrder, int, int]] = []
    for one in orders:
        argument, _ = one.recipe
        lanes = argument.element.stored_lanes
        end = (argument.count if one.end is None else one.end) * lanes
        begins = range(one.begin * lanes, end, _FILLED_AT_ONCE)
        places += [(one, begin, min(begin + _FILLED_AT_ONCE, end)) for begin in begins]
    # A kernel that walks down columns touches thousands of short ranges: a thread takes many.
    totals = accumulate(end - begin for _, begin, end in places)
    by_share = groupby(places, lambda _: next(totals) // _FILLED_AT_ONCE)
    shares = [[*share] for _, share in by_share]

    def fill(apply: Callable[..., Iterable[Any]]) -> None:
        recipes = {id(one.recipe): one.recipe for one in orders}
        writers = dict(zip(recipes, apply(_open_content, recipes.values()), strict=True))

        def write(share: Sequence[tuple[FillOrder, int, int]]) -> None:
            with np.errstate(over="ignore"):  # what a type cannot hold is infinite there
                for one, begin, end in share:
                    part = one.array.reshape(-1)[begin:end]
                    writers[id(one.recipe)](part, begin)

        deque(apply(write, shares), maxlen=0)

    if len(shares) <= 1:
        fill(map)  # to start threads takes longer
        return
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        fill(threads.map)


def draw_ahead(recipes: Iterable[Recipe]) -> None:
    """Draw random contents while opening a device and building leave a processor idle."""
    wanted = [one for one in recipes if one[0].init in _RANDOM and one[0].count >= _FILLED_AT_ONCE]

    def draw() -> None:
        with suppress(InputError):  # who fills by the recipe is told
            for one in wanted:
                _open_content(one)

    if wanted:
        threading.Thread(target=draw, daemon=True).start()


def _open_content(recipe: Recipe) -> Callable[[Array, int], None]:
    """Give what writes a piece of a buffer's content: into where, and from which place on."""
    argument, seed = recipe
    total = argument.count * argument.element.stored_lanes
    if argument.init is Init.ARANGE:

        def count_up(part: Array, begin: int) -> None:
            for place in range(0, part.size, _PIECE):
                piece, first = part[place : place + _PIECE], begin + place
                np.copyto(piece, np.arange(first, first + piece.size), casting="unsafe")

        return count_up
    if argument.init is Init.FILE:
        content = _load(argument).reshape(-1)
    elif argument.init is Init.PERMUTATION:
        # 2^26 numbers take 2.7 s so; to shuffle them where they lie, in 32 bits, takes 3.3 s.
        content = np.random.default_rng(seed).permutation(total)
    elif argument.init in _RANDOM:
        # Draw numbers, or take the first of those that were drawn of the same recipe and seed.
        count = min(total, RANDOM_PERIOD)
        key = (argument.init, argument.element.base, argument.low, argument.high, seed)
        with _drawn_lock:
            drawing = _drawing[key]
        with drawing:
            with _drawn_lock:
                kept = _drawn.get(key)
            if kept is None or kept.size < count:
                kept = _draw(argument, count, np.random.default_rng(seed))
                with _drawn_lock:
                    _drawn[key] = kept
        content = kept[:count]
    else:
        value = int(argument.init is Init.ONES)
        return lambda part, _: np.copyto(part, value)

    def write(part: Array, begin: int) -> None:
        done = 0
        while done < part.size:
            start = (begin + done) % content.size
            piece = content[start : start + part.size - done]
            np.copyto(part[done : done + piece.size], piece, casting="unsafe")
            done += piece.size

    return write


def _draw(argument: BufferArgument, count: int, rng: np.random.Generator) -> Array:
    dtype = argument.element.dtype
    if argument.init is Init.NORMAL:
        return rng.standard_normal(count, dtype=np.float32).astype(dtype)
    low, high = argument.uniform_range
    if dtype.kind == "f":
        unit = rng.random(count, dtype=np.float64 if dtype.itemsize == 8 else np.float32)
        # In place: new memory takes longer to get than the numbers to draw.
        if high - low != 1:
            unit *= high - low
        if low != 0:
            unit += low
        return unit.astype(dtype, copy=False)
    return rng.integers(math.ceil(low), math.ceil(high), count, dtype=dtype)


def check_file(argument: BufferArgument) -> None:
    """Check the file of a buffer's content by its header; nothing where there is none."""
    if argument.init is Init.FILE:
        _load(argument, mapping="r")


def _load(argument: BufferArgument, mapping: Literal["r"] | None = None) -> Array:
    path, dtype, shape = argument.path, argument.element.dtype, shape_of(argument)
    if argument.data is not None:
        return np.frombuffer(argument.data, dtype).reshape(shape)
    content = load_array(path, mapping)
    if content.dtype.names and content.dtype.itemsize == argument.element.bytes:
        content = np.ascontiguousarray(content).view(dtype)  # structures as their bytes
    if content.dtype != dtype or content.size != np.prod(shape):
        raise InputError(
            f"{path}: holds {content.size} values of {content.dtype}, "
            f"the buffer wants {int(np.prod(shape))} of {dtype}"
        )
    return content if mapping else np.ascontiguousarray(content).reshape(shape)


def load_array(path: Path | None, mapping: Literal["r"] | None = None) -> Array:
    try:
        content: Array = np.load(str(path), mmap_mode=mapping, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        msg = f"{path}: cannot be read as a .npy file ({error}); write it with numpy.save"
        raise InputError(msg) from error
    return content


_BUFFER_SPACES = ("global", "constant")


def check_arguments(
    kernel_name: str, parameters: Sequence[Parameter], arguments: Sequence[Argument]
) -> None:
    """Check count, kinds and types of a problem's arguments; name all that do not fit."""
    for parameter in parameters:
        if re.search(r"\bpipe\b", parameter.type_name):
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
    return re.fullmatch(r"image[123]d(_\w+)?_t", parameter.type_name) is not None


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
