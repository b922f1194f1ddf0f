"""Reads problem files (format: docs/reference/problem-files.md), and problems that came as JSON."""

import base64
import binascii
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, NoReturn

import numpy as np
from yaml.representer import SafeRepresenter

from kernelcast.launches.problem_file.located import (
    Located,
    Number,
    check_names,
    items_of,
    list_of,
    load,
    pairs_of,
    read_ndrange,
    read_text,
)
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
from kernelcast.records.errors import ProblemFileError
from kernelcast.records.kernel import Kernel, includes_files
from kernelcast.records.problem import Problem

KEYS = (
    "source", "code", "kernel", "build_options", "global_size", "local_size", "global_offset",
    "parameters", "restrictions", "args",
)  # fmt: skip
REQUIRED = ("kernel", "global_size", "args")
_PLACE = Path("problem")
_DEEPEST = 6
_MOST_VALUES = 20_000
_TOO_MUCH = (
    f"problem: holds more than {_MOST_VALUES:,} values, or lists inside lists more than "
    f"{_DEEPEST} deep; a problem needs lists in mappings in one list, no more"
)


def read_problem(
    path: Path | str,
    *,
    parameters: Mapping[str, Number] | None = None,
    inputs_folder: Path | None = None,
) -> Problem:
    """Read one problem file.

    Parameters
    ----------
    path : Path or str
        The YAML file; files it names are relative to it.
    parameters : mapping of str to number, optional
        Values that replace those of the file's `parameters`.
    inputs_folder : Path, optional
        What .npy files are relative to, where they do not lie beside the problem file.

    Raises
    ------
    ProblemFileError
        If the file cannot be read, is no YAML, or says something that cannot be used; the
        message begins with file and line.
    """
    template = read_template(path, parameters=parameters)
    return template.make(template.first, inputs_folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemTemplate:
    """A problem file that was read once, for all values of its parameters."""

    path: Path
    root: Located
    overrides: Mapping[str, Number]

    @property
    def swept(self) -> tuple[str, ...]:
        """Parameters that have a list of values, those replaced left out."""
        entries = list_parameters(self.root)
        return tuple(
            name for name, one in entries.items() if one.is_list and name not in self.overrides
        )

    def list_parameters(self) -> Iterator[dict[str, Number]]:
        """List all combinations of parameters that no restriction forbids, the last one fastest."""
        entries = list_parameters(self.root)
        check_names(self.root, self.overrides, entries)
        section = self.root.mapping(KEYS).get("restrictions")
        for names in combine_values(entries, self.overrides):
            if all(one.holds() for one in list_of(section and replace(section, names=names))):
                yield names

    @property
    def first(self) -> dict[str, Number]:
        """The parameters, of lists their first value (`collect` sweeps all)."""
        entries = list_parameters(self.root)
        names = next(combine_values(entries, self.overrides))
        check_names(self.root, self.overrides, entries)
        return names

    def make(self, parameters: Mapping[str, Number], inputs_folder: Path | None = None) -> Problem:
        root, folder = replace(self.root, names=parameters), inputs_folder or self.path.parent
        entries = root.mapping(KEYS, required=REQUIRED)
        return Problem(
            name=self.path.stem,
            kernel=read_kernel(root, entries, self.path),
            ndrange=read_ndrange(entries),
            arguments=tuple(read_argument(item, folder) for item in entries["args"].items()),
        )


def read_template(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> ProblemTemplate:
    path = Path(path)
    text = read_text(path, "problem file")
    if path.suffix == ".cl":
        msg = f"{path}: is an OpenCL source; name it in a problem file, by `source: {path.name}`"
        raise ProblemFileError(msg)
    return ProblemTemplate(
        path=path, root=load(path, text, Located), overrides=dict(parameters or {})
    )


def read_parameters(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> dict[str, Number]:
    """Read the parameters of a problem file, derived ones computed."""
    return read_template(path, parameters=parameters).first


def list_parameters(root: Located) -> dict[str, Located]:
    return pairs_of(root.mapping(KEYS).get("parameters"))


def combine_values(
    entries: Mapping[str, Located], overrides: Mapping[str, Number]
) -> Iterator[dict[str, Number]]:
    """Combine the values of parameters, each of which may be computed from those before it."""
    combined: Iterator[dict[str, Number]] = iter([{}])
    for name, value in entries.items():
        combined = _extend(combined, name, value, overrides)
    return combined


def _extend(
    combined: Iterable[dict[str, Number]],
    name: str,
    value: Located,
    overrides: Mapping[str, Number],
) -> Iterator[dict[str, Number]]:
    for names in combined:
        here = replace(value, names=names)
        values = [one.number() for one in (here.items() if here.is_list else [here])]
        if not values:
            here.fail("expected at least one number, found an empty list")
        for one in [overrides[name]] if name in overrides else values:
            yield {**names, name: one}


def read_kernel(root: Located, entries: Mapping[str, Located], path: Path) -> Kernel:
    """Read the kernel; its source is text of the file, or of another one beside it."""
    if ("source" in entries) == ("code" in entries):
        root.fail("give either `source: FILE.cl` or `code: |` with the text, one of the two")
    build_options = tuple(item.text() for item in list_of(entries.get("build_options")))
    if "source" in entries:
        paths = [one.file(path.parent) for one in items_of(entries["source"])]
        if not paths:
            entries["source"].fail("expected a file, or a list of files, found nothing")
        source = "\n".join(read_text(one, "kernel source") for one in paths)
        source_name = " + ".join(one.name for one in paths)
        if includes_files(source, build_options):
            # Folders of included files begin where the problem file lies, as all its paths.
            build_options = (
                *(
                    f"-I{path.parent / one[2:]}" if one.startswith("-I") and one != "-I" else one
                    for one in build_options
                ),
                *dict.fromkeys(f"-I{one.parent}" for one in paths),
            )
    else:
        source, source_name = entries["code"].raw_text(), f"{path.name} (code)"
    name = entries["kernel"].text()
    with entries["kernel"].pointing_here():
        return Kernel(
            name=name, source=source, source_name=source_name, build_options=build_options
        )


class InlineProblemError(ProblemFileError):
    """Is raised for a value that cannot be used; tells which one."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class _Inline(Located):
    """A value that knows its key; it has no line, and names no file."""

    whole: ClassVar[str] = "a problem needs code, kernel, global_size and args"

    def fail(self, complaint: str) -> NoReturn:
        msg = f"{self.key}: {complaint}" if self.key == "problem" else (
            f"problem: {self.key}: {complaint}"
        )  # fmt: skip
        raise InlineProblemError(msg.encode(errors="backslashreplace").decode(), self.key)

    def file(self, folder: Path) -> Path:
        del folder
        self.fail(
            "names a file, and no file of the sender is read here; give a source as `code`, and "
            "contents of buffers as recipes (zeros, ones, uniform, normal, arange, permutation)"
        )


def read_inline_problem(content: Mapping[str, Any], *, name: str | None = None) -> Problem:
    """Read a problem from plain values: the keys of a problem file, with the source as `code`."""
    plain = dict(content)
    if _count_values(plain, 0) > _MOST_VALUES:
        raise ProblemFileError(_TOO_MUCH)
    root = _Inline(SafeRepresenter(sort_keys=False).represent_data(plain), _PLACE)
    entries = root.mapping(KEYS, required=REQUIRED)
    if "source" in entries:
        entries["source"].file(_PLACE)
    template = ProblemTemplate(path=_PLACE, root=root, overrides={})
    problem = template.make(template.first, _PLACE)
    return replace(problem, name=name or problem.kernel.name)


def _count_values(value: Any, depth: int) -> int:  # noqa: ANN401 - any plain value
    if depth > _DEEPEST:
        raise ProblemFileError(_TOO_MUCH)
    match value:
        case dict():
            return 1 + sum(_count_values(one, depth + 1) for one in value.values())
        case list() | tuple():
            return 1 + sum(_count_values(one, depth + 1) for one in value)
        case None | bool() | int() | str():
            return 1
        case float() if math.isfinite(value):
            return 1
    raise ProblemFileError(f"problem: {value!r} is no text, finite number, list or mapping")


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
