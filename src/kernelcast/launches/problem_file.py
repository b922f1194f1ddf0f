"""Problem files (YAML), the unit that the commands take, and problems that came as JSON.

Format: docs/reference/problem-files.md.
"""

import base64
import binascii
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, Self, TypeAlias

import numpy as np
from yaml.representer import SafeRepresenter

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
from kernelcast.records.errors import InputError, ProblemFileError
from kernelcast.records.kernel import Kernel
from kernelcast.records.problem import Problem
from kernelcast.records.yaml_files import (
    Located,
    Number,
    Sizes,
    combine_parameters,
    list_parameters,
    load,
    make_ndrange,
    read_text,
)
from kernelcast.sampling.arguments import load_array

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
    """A problem file that was read once, its values still to be read, for all parameters."""

    root: Located
    overrides: Mapping[str, Number]
    source: Located | None = None
    code: Located | None = None
    kernel: Located
    build_options: Located | None = None
    global_size: Located
    local_size: Located | None = None
    global_offset: Located | None = None
    parameters: Located | None = None
    restrictions: Located | None = None
    args: Located

    @classmethod
    def read(cls, root: Located, overrides: Mapping[str, Number]) -> Self:
        """Read the keys of a file; other keys are refused."""
        return root.call(cls, root=root, overrides=overrides)

    @property
    def path(self) -> Path:
        """The file; `problem` where there is none."""
        return self.root.path or Path("problem")

    @property
    def swept(self) -> tuple[str, ...]:
        """Parameters that have a list of values, those replaced left out."""
        entries = {} if self.parameters is None else self.parameters.mapping()
        return tuple(
            name for name, one in entries.items() if one.is_list and name not in self.overrides
        )

    def list_parameters(self) -> Iterator[dict[str, Number]]:
        """List all combinations of parameters that no restriction forbids, the last one fastest."""
        for names in combine_parameters(self.root, self.parameters, self.overrides):
            section = self.restrictions and replace(self.restrictions, names=names)
            if all(one.holds() for one in (section.items() if section else ())):
                yield names

    @property
    def first(self) -> dict[str, Number]:
        """The parameters, of lists their first value (`collect` sweeps all)."""
        return next(combine_parameters(self.root, self.parameters, self.overrides))

    def bind(self, parameters: Mapping[str, Number]) -> Self:
        """Have values read with parameters filled in."""
        return self.read(replace(self.root, names=parameters), self.overrides)

    def make(self, parameters: Mapping[str, Number], inputs_folder: Path | None = None) -> Problem:
        """Make the problem for values of its parameters, .npy files relative to a folder."""
        keys = self.bind(parameters)
        folder = inputs_folder or self.root.folder
        arguments = (_read_argument(replace(one, folder=folder)) for one in keys.args.items())
        return Problem(
            name=self.path.stem,
            kernel=keys.read_kernel(),
            ndrange=make_ndrange(keys.global_size.sizes(), keys.local_size, keys.global_offset),
            arguments=tuple(arguments),
        )

    def read_kernel(self) -> Kernel:
        """Read the kernel; its source is text of the file, or of another one beside it."""
        options = () if self.build_options is None else self.build_options.read(tuple[str, ...])
        paths = []
        if self.source is not None and self.code is None:
            paths = [one.file() for one in self.source.list_some()]
            if not paths:
                self.source.fail("expected a file, or a list of files, found nothing")
            source = "\n".join(read_text(one, "kernel source", ProblemFileError) for one in paths)
            source_name = " + ".join(one.name for one in paths)
        elif self.code is not None and self.source is None:
            source, source_name = self.code.raw_text(), f"{self.path.name} (code)"
        else:
            self.root.fail("give either `source: FILE.cl` or `code: |` with text, one of the two")
        name = self.kernel.text()
        with self.kernel.pointing_here():
            kernel = Kernel(
                name=name, source=source, source_name=source_name, build_options=options
            )
        if not paths or not kernel.includes_files:
            return kernel
        # Folders of included files begin where the problem file lies, as all its paths.
        folders = [
            f"-I{self.root.folder / one[2:]}" if one.startswith("-I") and one != "-I" else one
            for one in options
        ]
        beside = dict.fromkeys(f"-I{one.parent}" for one in paths)
        return replace(kernel, build_options=(*folders, *beside))


def read_template(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> ProblemTemplate:
    """Read a problem file for several values of its parameters."""
    path = Path(path)
    if path.suffix == ".cl" and path.is_file():
        msg = f"{path}: is an OpenCL source; name it in a problem file, by `source: {path.name}`"
        raise ProblemFileError(msg)
    needs = "a problem needs source, kernel, global_size and args"
    root = load(path, "problem file", needs, ProblemFileError)
    return ProblemTemplate.read(root, dict(parameters or {}))


def read_parameters(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> dict[str, Number]:
    """Read the parameters of a problem file, derived ones computed."""
    return read_template(path, parameters=parameters).first


def read_inline_problem(content: Mapping[str, Any], *, name: str | None = None) -> Problem:
    """Read a problem from plain values: the keys of a problem file, with the source as `code`."""
    plain = dict(content)
    if _count_values(plain, 0) > _MOST_VALUES:
        raise ProblemFileError(_TOO_MUCH)
    node = SafeRepresenter(sort_keys=False).represent_data(plain)
    root = Located(node=node, path=None, what="problem", error=ProblemFileError)
    template = ProblemTemplate.read(root, {})
    problem = template.make(template.first)
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


_CHANNELS: Final = {
    "snorm_int8": "int8", "snorm_int16": "int16", "unorm_int8": "uint8", "unorm_int16": "uint16",
    "signed_int8": "int8", "signed_int16": "int16", "signed_int32": "int32",
    "unsigned_int8": "uint8", "unsigned_int16": "uint16", "unsigned_int32": "uint32",
    "half_float": "float16", "float": "float32",
}  # fmt: skip
_ORDERS: Final = {"r": 1, "rg": 2, "rgba": 4, "bgra": 4, "intensity": 1, "luminance": 1}
_FILTERS: Final = ("nearest", "linear")
_ADDRESSES: Final = ("none", "clamp", "clamp_to_edge", "repeat", "mirrored_repeat")


def _read_argument(item: Located) -> Argument:
    known = dict.fromkeys(
        key for _, make in ARGUMENT_KINDS.values() for key in list_parameters(make)
    )
    entries = item.mapping(known)
    kinds = [name for name in ARGUMENT_KINDS if name in entries]
    if len(kinds) != 1:
        *first, last = [f"`{name}: {example}`" for name, (example, _) in ARGUMENT_KINDS.items()]
        item.fail(f"give one of {', '.join(first)} or {last}")
    if kinds[0] == "buffer" and entries["buffer"].is_null:
        item.mapping(("buffer",))  # NULL has no content
        return BufferArgument(element=ElementType("uint8"), count=0)
    _, make = ARGUMENT_KINDS[kinds[0]]
    return item.call(make)


def _read_init(given: Located) -> dict[str, object]:
    """Read where a content comes from: its `init`, with the data or the path of a file."""
    if given.is_mapping:
        encoded = given.mapping(("base64",), required=("base64",))["base64"]
        try:
            data = base64.b64decode(encoded.raw_text(), validate=True)
        except (binascii.Error, ValueError) as error:
            encoded.fail(f"is no Base64 ({error}); encode the values' bytes")
        return {"init": Init.FILE, "data": data}
    if given.text().endswith(".npy"):
        return {"init": Init.FILE, "path": given.file()}
    recipes = [one.value for one in Init if one is not Init.FILE]
    return {"init": Init(given.choice(recipes, also="a file.npy"))}


_Content: TypeAlias = Annotated[Mapping[str, Any], _read_init]
_Element: TypeAlias = Annotated[ElementType, lambda one: ElementType.parse(one.text())]
_Order: TypeAlias = Annotated[str, lambda one: one.choice(_ORDERS)]
_Channel: TypeAlias = Annotated[str, lambda one: one.choice(_CHANNELS)]
_Filter: TypeAlias = Annotated[str, lambda one: one.choice(_FILTERS)]
_Address: TypeAlias = Annotated[str, lambda one: one.choice(_ADDRESSES)]
_ZEROS: Final = {"init": Init.ZEROS}


def _make_buffer(
    buffer: Located,
    count: int,
    init: _Content = _ZEROS,
    access: Access | None = None,
    low: Number | None = None,
    high: Number | None = None,
) -> BufferArgument:
    element = _Layout.read(buffer).element if buffer.is_mapping else buffer.read(_Element)
    if buffer.is_mapping and init["init"] not in {Init.ZEROS, Init.FILE}:
        raise InputError("structures are filled with zeros or from a file.npy; write one of them")
    return BufferArgument(element=element, count=count, access=access, low=low, high=high, **init)


def _make_image(
    image: _Order,
    channel: _Channel,
    size: Sizes,
    layers: int = 0,
    init: _Content = _ZEROS,
    access: Access | None = None,
    low: Number | None = None,
    high: Number | None = None,
) -> ImageArgument:
    if layers and len(size) > 2:
        raise InputError("`layers` are of images of one or two axes; remove them or an axis")
    return ImageArgument(
        element=ElementType(_CHANNELS[channel], _ORDERS[image]),
        count=math.prod(size) * max(layers, 1), size=size, layers=layers, order=image,
        channel=channel, access=access, low=low, high=high, **init,
    )  # fmt: skip


def _make_scalar(scalar: _Element, value: Located) -> ScalarArgument:
    items = value.items() if value.is_list else [value]
    if len(items) != scalar.lanes:
        value.fail(f"expected {scalar.lanes} numbers for {scalar}, found {len(items)}")
    is_whole = scalar.dtype.kind in "iu"
    numbers = [one.integer(minimum=-(2**63)) if is_whole else one.number() for one in items]
    with value.pointing_here():
        return ScalarArgument(element=scalar, values=tuple(numbers))


def _make_struct(struct: Located, value: Located) -> ScalarArgument:
    layout = _Layout.read(struct)
    if value.is_mapping:
        content = bytearray(layout.element.lanes)
        given = value.mapping(layout.fields, required=layout.fields)
        for name, (start, element) in layout.fields.items():
            stored = np.asarray(make_scalar(_make_scalar(element, given[name]))).tobytes()
            content[start : start + len(stored)] = stored
        return ScalarArgument(element=layout.element, values=tuple(content))
    path = value.file()
    with value.pointing_here():
        stored = load_array(path).tobytes()
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
        for name, located in given.mapping().items():
            element = located.read(_Element)
            start = -(-end // element.bytes) * element.bytes
            fields[name] = start, element
            end, largest = start + element.bytes, max(largest, element.bytes)
        if not fields:
            given.fail("a structure has at least one field")
        return cls(ElementType("uint8", -(-end // largest) * largest), fields)


def _make_sampler(
    sampler: _Filter, address: _Address = "clamp_to_edge", normalized: bool = False
) -> SamplerArgument:
    return SamplerArgument(filter=sampler, address=address, normalized=normalized)


def _make_local(local: int) -> LocalArgument:
    return LocalArgument(bytes=local)


ARGUMENT_KINDS: Final[Mapping[str, tuple[str, Callable[..., Argument]]]] = {
    "buffer": ("TYPE", _make_buffer), "scalar": ("TYPE", _make_scalar),
    "local": ("BYTES", _make_local), "struct": ("FIELDS", _make_struct),
    "image": ("CHANNELS", _make_image), "sampler": ("FILTER", _make_sampler),
}  # fmt: skip
"""How each kind of argument is shown, and what makes it of its keys."""
