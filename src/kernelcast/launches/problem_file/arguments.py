"""Reads one entry of a problem file's `args`."""

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from kernelcast.launches.problem_file.located import Located, Number
from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    ElementType,
    ImageArgument,
    Init,
    LocalArgument,
    SamplerArgument,
    ScalarArgument,
    make_scalar,
)

_CONTENT: Final = ("init", "access", "low", "high")
_CHANNELS: Final = {
    "snorm_int8": "int8", "snorm_int16": "int16", "unorm_int8": "uint8", "unorm_int16": "uint16",
    "signed_int8": "int8", "signed_int16": "int16", "signed_int32": "int32",
    "unsigned_int8": "uint8", "unsigned_int16": "uint16", "unsigned_int32": "uint32",
    "half_float": "float16", "float": "float32",
}  # fmt: skip
_ORDERS: Final = {"r": 1, "rg": 2, "rgba": 4, "bgra": 4, "intensity": 1, "luminance": 1}
_FILTERS: Final = ("nearest", "linear")
_ADDRESSES: Final = ("none", "clamp", "clamp_to_edge", "repeat", "mirrored_repeat")


class _Kind(NamedTuple):
    read: "Callable[[Located, Mapping[str, Located], Path], Argument]"
    keys: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    example: str = "TYPE"


def read_argument(item: Located, folder: Path) -> Argument:
    kinds = [name for name in _KINDS if name in item.mapping(ALL_KEYS)]
    if len(kinds) != 1:
        *first, last = [f"`{name}: {kind.example}`" for name, kind in _KINDS.items()]
        item.fail(f"give one of {', '.join(first)} or {last}")
    kind = _KINDS[kinds[0]]
    entries = item.mapping((kinds[0], *kind.required, *kind.keys))
    if kinds[0] == "buffer" and entries["buffer"].is_null:
        item.mapping(("buffer",))
        return BufferArgument(element=ElementType("uint8"), count=0)
    return kind.read(item, item.mapping([*entries], required=kind.required), folder)


def _read_buffer(item: Located, entries: Mapping[str, Located], folder: Path) -> BufferArgument:
    layout = _Layout.read(entries["buffer"]) if entries["buffer"].is_mapping else None
    buffer = BufferArgument(
        element=layout.element if layout else _read_element(entries["buffer"]),
        count=entries["count"].integer(minimum=1),
        **_read_content(item, entries, folder),  # type: ignore[arg-type]  # by its keys
    )
    if layout and buffer.init not in {Init.ZEROS, Init.FILE}:
        item.fail("structures are filled with zeros or from a file.npy; write one of them")
    return _check_content(item, buffer)


def _read_image(item: Located, entries: Mapping[str, Located], folder: Path) -> ImageArgument:
    order = entries["image"].choice(_ORDERS)
    channel = entries["channel"].choice(_CHANNELS)
    size = entries["size"].sizes(minimum=1)
    layers = entries["layers"].integer(minimum=1) if "layers" in entries else 0
    if layers and len(size) > 2:
        item.fail("`layers` are of images of one or two axes; remove them or an axis")
    image = ImageArgument(
        element=ElementType(_CHANNELS[channel], _ORDERS[order]),
        count=math.prod(size) * max(layers, 1), size=size, layers=layers, order=order,
        channel=channel,
        **_read_content(item, entries, folder),  # type: ignore[arg-type]  # by its keys
    )  # fmt: skip
    _check_content(item, image)
    return image


def _check_content(item: Located, buffer: BufferArgument) -> BufferArgument:
    complaint = buffer.complain_about_range()
    if complaint:
        item.fail(complaint)
    wanted = buffer.count * buffer.element.bytes
    if buffer.data is not None and len(buffer.data) != wanted:
        item.fail(f"init: {len(buffer.data):,} bytes given, the buffer has {wanted:,}")
    return buffer


def _read_content(
    item: Located, entries: Mapping[str, Located], folder: Path
) -> dict[str, Init | Number | Access | Path | bytes | None]:
    low, high = (entries[key].number() if key in entries else None for key in ("low", "high"))
    content: dict[str, Init | Number | Access | Path | bytes | None] = {"low": low, "high": high}
    given = entries.get("init")
    init = Init.ZEROS
    if given is not None and given.is_mapping:
        init, encoded = Init.FILE, given.mapping(("base64",))["base64"]
        try:
            content["data"] = base64.b64decode(encoded.raw_text(), validate=True)
        except (binascii.Error, ValueError) as error:
            encoded.fail(f"is no Base64 ({error}); encode the values' bytes")
    elif given is not None and given.text().endswith(".npy"):
        init, content["path"] = Init.FILE, given.file(folder)
    elif given is not None:
        recipes = [one.value for one in Init if one is not Init.FILE]
        init = Init(given.choice(recipes, also="a file.npy"))
    if (low is not None or high is not None) and init is not Init.UNIFORM:
        item.fail("`low` and `high` are the range of `init: uniform`; remove them or use it")
    if "access" in entries:
        content["access"] = Access(entries["access"].choice([one.value for one in Access]))
    return {**content, "init": init}


def _read_value(element: ElementType, value: Located) -> ScalarArgument:
    items = value.items() if value.is_list else [value]
    if len(items) != element.lanes:
        value.fail(f"expected {element.lanes} numbers for {element}, found {len(items)}")
    numbers = tuple(item.number() for item in items)
    if element.dtype.kind in "iu":
        numbers = tuple(
            int(n) if float(n).is_integer() else value.fail(f"{n} is no whole number; {element} "
                                                            "needs one")
            for n in numbers
        )  # fmt: skip
    scalar = ScalarArgument(element=element, values=numbers)
    complaint = scalar.complain_about_range()
    if complaint:
        value.fail(complaint)
    return scalar


def _read_struct(_: Located, entries: Mapping[str, Located], folder: Path) -> ScalarArgument:
    layout, value = _Layout.read(entries["struct"]), entries["value"]
    if value.is_mapping:
        content = bytearray(layout.element.lanes)
        given = value.mapping([*layout.fields], required=layout.fields)
        for name, (start, element) in layout.fields.items():
            stored = np.asarray(make_scalar(_read_value(element, given[name]))).tobytes()
            content[start : start + len(stored)] = stored
        return ScalarArgument(element=layout.element, values=tuple(content))
    path = value.file(folder)
    try:
        stored = np.load(path, allow_pickle=False).tobytes()
    except (OSError, ValueError, EOFError) as error:
        value.fail(f"{path} cannot be read as a .npy file ({error}); write it with numpy.save")
    if len(stored) != layout.element.lanes:
        value.fail(f"{path} holds {len(stored)} bytes, the structure has {layout.element.lanes}")
    return ScalarArgument(element=layout.element, values=tuple(stored))


class _Layout(NamedTuple):
    """Where the fields of a structure lie: each at a multiple of its size, as in OpenCL C."""

    element: ElementType
    fields: dict[str, tuple[int, ElementType]]

    @classmethod
    def read(cls, given: Located) -> "_Layout":
        fields, end, largest = {}, 0, 1
        for name, located in given.pairs().items():
            element = _read_element(located)
            start = -(-end // element.bytes) * element.bytes
            fields[name] = start, element
            end, largest = start + element.bytes, max(largest, element.bytes)
        if not fields:
            given.fail("a structure has at least one field")
        return cls(ElementType("uint8", -(-end // largest) * largest), fields)


def _read_sampler(_: Located, entries: Mapping[str, Located], __: Path) -> SamplerArgument:
    normalized = entries.get("normalized")
    return SamplerArgument(
        filter=entries["sampler"].choice(_FILTERS),
        address=entries["address"].choice(_ADDRESSES) if "address" in entries else "clamp_to_edge",
        normalized=normalized is not None and normalized.choice(("true", "false")) == "true",
    )


def _read_element(located: Located) -> ElementType:
    with located.pointing_here():
        return ElementType.parse(located.text())


_KINDS: Final = {
    "buffer": _Kind(_read_buffer, _CONTENT, ("count",)),
    "scalar": _Kind(
        lambda _, entries, __: _read_value(_read_element(entries["scalar"]), entries["value"]),
        (),
        ("value",),
    ),
    "local": _Kind(
        lambda _, entries, __: LocalArgument(bytes=entries["local"].integer(minimum=1)),
        example="BYTES",
    ),
    "struct": _Kind(_read_struct, (), ("value",), "FIELDS"),
    "image": _Kind(_read_image, (*_CONTENT, "layers"), ("channel", "size"), "CHANNELS"),
    "sampler": _Kind(_read_sampler, ("address", "normalized"), (), "FILTER"),
}
ALL_KEYS: Final = tuple(
    dict.fromkeys(
        key for name, kind in _KINDS.items() for key in (name, *kind.keys, *kind.required)
    )
)
