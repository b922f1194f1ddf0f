"""YAML files, read as types say; every complaint names file, line and key.

A mapping is the call of a function or the making of a record: its keys are the parameters, and
their types say how each value is read.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, is_dataclass, replace
from enum import StrEnum
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NoReturn,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import yaml

from kernelcast.records.arithmetic import ArithmeticProblem, evaluate, holds
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange

Number: TypeAlias = int | float
Made = TypeVar("Made")
_NESTED_BLOCKS: Final = re.compile(r"^\s{200}|(?:[-?:]\s+){20}", re.MULTILINE)
_HALF: Final = re.compile("[\ud800-\udfff]")
_NAME: Final = re.compile(r"\{\s*([A-Za-z_]\w*)\s*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A value of a file, with what it takes to read it and to say what is wrong with it."""

    node: yaml.Node
    path: Path | None
    """The file; None where there is none, of values that came as JSON."""
    what: str
    """What the whole is called, for messages."""
    key: str = ""
    """Place of the value, such as ``args[0].count``; empty for the whole."""
    names: Mapping[str, Number] | None = None
    """Values of ``{NAME}``; None in files without parameters, where braces are text."""
    folder: Path = Path()
    """What names of files are relative to."""
    error: type[InputError] = InputError

    def fail(self, complaint: str) -> NoReturn:
        line = self.node.start_mark and self.node.start_mark.line + 1
        place = self.what if self.path is None else f"{self.path}:{line}"
        msg = ": ".join([*dict.fromkeys((place, self.key or self.what)), complaint])
        # YAML can spell halves of characters ("\ud800"), which no terminal takes.
        error = self.error(msg.encode(errors="backslashreplace").decode())
        error.key = self.key
        raise error

    @contextmanager
    def pointing_here(self) -> Iterator[None]:
        """Let what is refused meanwhile point at this value, unless it points at one already."""
        try:
            yield
        except InputError as error:
            if error.key is not None:
                raise
            self.fail(str(error))

    def call(
        self,
        make: Callable[..., Made],
        usual: Mapping[str, object] | None = None,
        without: Collection[str] = (),
        **given: object,
    ) -> Made:
        """Call a function, or make a record, of a mapping: its keys are the other parameters."""
        parameters, known = list_parameters(make), {**(usual or {}), **given}
        entries = self.list_arguments(make, *given, also=without)
        for name, (_, is_optional) in parameters.items():
            if not is_optional and name not in {*entries, *known}:
                self.fail(f"the key `{name}` is missing")
        for name, (hint, is_optional) in parameters.items():
            if name in entries and not (is_optional and entries[name].is_null):
                known[name] = entries[name].read(hint)
        with self.pointing_here():
            return make(**known)

    def list_arguments(
        self, make: Callable[..., object], *given: str, also: Collection[str] = ()
    ) -> "dict[str, Located]":
        """List what a mapping has for a function, unread; other keys are refused."""
        return self.mapping([*also, *(one for one in list_parameters(make) if one not in given)])

    def read(self, hint: Any) -> Any:  # noqa: ANN401 - as the type says
        """Read a value of a type that parameters and fields of records have."""
        origin, kinds, is_record = get_origin(hint), get_args(hint), is_dataclass(hint)
        if origin is Annotated:  # with what reads it
            with self.pointing_here():
                return kinds[1](self)
        if origin in {Union, UnionType}:
            if NoneType in kinds and self.is_null:
                return None
            return self.number() if {int, float} <= {*kinds} else self.read(kinds[0])
        if hint is Located or isinstance(hint, TypeVar):
            return self
        if origin is Trait:
            if not self.is_mapping:
                return Trait(value=self.read(kinds[0]), source=TraitSource.ASSUMED)
            told = self.call(Trait)  # its numbers are still to be read
            value = told.value._at(told.value.node, self.key).read(kinds[0])
            low, high = (one if one is None else one.number() for one in (told.low, told.high))
            if (low is not None and low > value) or (high is not None and high < value):
                self.fail(f"expected low <= value <= high, found {low} <= {value} <= {high}")
            return replace(told, value=value, low=low, high=high)
        if origin is tuple and self.is_mapping and hasattr(kinds[0], "__dataclass_fields__"):
            first, *_ = list_parameters(kinds[0])
            pairs: dict[Any, Located] = {**self.mapping()}
            return tuple(one.call(kinds[0], **{first: key}) for key, one in pairs.items())
        if origin is tuple and kinds[0] is float:  # points of curves may be negative
            return tuple(float(one.number()) for one in self.items())
        if origin is tuple:
            return tuple(one.read(kinds[0]) for one in self.items())
        if origin is not None:
            return {one.read_key(key, kinds[0]): one.read(kinds[1])
                    for key, one in self.mapping().items()}  # fmt: skip
        if hint in _READERS:
            return _READERS[hint](self)
        if is_record:
            return self.call(hint)
        return hint(self.choice(hint) if issubclass(hint, StrEnum) else self.text())

    def read_key(self, key: str, kind: type) -> object:
        if kind is int and not (key.isdecimal() and int(key) >= 1):
            self.fail(f"expected a whole number of at least 1 as the key, found {key!r}")
        return kind(key)

    def mapping(
        self, known: Collection[str] | None = None, required: Iterable[str] = ()
    ) -> "dict[str, Located]":
        """List a mapping, which may be left empty; of known keys others are refused."""
        if not self.is_null and not isinstance(self.node, yaml.MappingNode):
            keys = (
                "`NAME: value` pairs"
                if known is None
                else f"`key: value` pairs ({', '.join(known)})"
            )
            self.fail(f"expected {keys}, found {self._found()}")
        entries: dict[str, Located] = {}
        for key_node, value in () if self.is_null else self.node.value:
            name = str(key_node.value)
            key = f"{self.key}.{name}" if self.key else name
            if name in entries:
                self._at(key_node, key).fail("is given twice; keep one")
            if known is not None and name not in known:
                told = f"unknown key{_nearest(name, known)}; the keys here are {', '.join(known)}"
                self._at(key_node, key).fail(told)
            entries[name] = self._at(value, key)
        for key in required:
            if key not in entries:
                self.fail(f"the key `{key}` is missing")
        return entries

    def _at(self, node: yaml.Node, key: str) -> "Located":
        """Go to a part."""
        return replace(self, node=node, key=key)

    def items(self) -> "list[Located]":
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail(f"expected a list, found {self._found()}")
        return [
            self._at(item, f"{self.key}[{index}]") for index, item in enumerate(self.node.value)
        ]

    def list_some(self) -> "list[Located]":
        return self.items() if self.is_list else [] if self.is_null else [self]

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_text(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and not self.is_null

    @property
    def is_null(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:null"

    def text(self) -> str:
        return self._fill_in("{}")

    def _fill_in(self, form: str) -> str:
        text, names = self.raw_text(), self.names
        if names is None:
            return text
        for name in _NAME.findall(text):
            if name not in names:
                known = ", ".join(names) or "none"
                self.fail(f"{{{name}}} is no parameter{_nearest(name, names)}; there are: {known}")
        return _NAME.sub(lambda one: form.format(names[one[1]]), text)

    def raw_text(self) -> str:
        if not self.is_text:
            hint = '; write "{NAME}" in quotes' if self.is_mapping else ""
            self.fail(f"expected a text, found {self._found()}{hint}")
        text = str(self.node.value)
        if half := _HALF.search(text):
            self.fail(f"found {half[0]!r}, half of a character; write the whole character")
        return text

    def choice(self, known: Iterable[str], *, also: str = "") -> str:
        text, words = self.text(), [*known]
        if text not in words:
            names = ", ".join([*words, *([also] if also else [])])
            self.fail(f"expected one of {names}; found {text!r}")
        return text

    def sizes(self, *, minimum: int = 1) -> tuple[int, ...]:
        """Read one to three whole numbers; a single one stands for a list of one."""
        items = self.list_some()
        if not 1 <= len(items) <= 3:
            found = "nothing" if self.is_null else len(items)
            self.fail(f"expected one to three numbers, found {found}")
        return tuple(item.integer(minimum=minimum) for item in items)

    def file(self) -> Path:
        if self.path is None:
            self.fail(
                "names a file, and no file of the sender is read here; give a source as `code`, "
                "and contents of buffers as recipes (zeros, ones, uniform, normal, arange, "
                "permutation)"
            )
        path = self.folder / self.text()
        try:
            is_there = path.is_file()
        except OSError as error:  # for instance a name longer than the file system takes
            self.fail(f"the file {path} cannot be found: {error.strerror or error}")
        if not is_there:
            self.fail(f"there is no file {path}")
        return path

    def number(self) -> Number:
        """Read a number, arithmetic (``"{N} * {N}"``), or one that says where it comes from."""
        if self.names is None and self.is_mapping:
            return self.mapping(("value", "origin"), required=("value",))["value"].number()
        return self._compute(evaluate, "a number or arithmetic")

    def holds(self) -> bool:
        return self._compute(holds, "a condition over numbers")

    def _compute(self, compute: Callable[[str], Made], what: str) -> Made:
        # Values, not text: N = -2 makes "{N} ** 2" 4.
        text = self._fill_in("({})")
        try:
            return compute(text)
        except ArithmeticProblem as problem:
            self.fail(f"expected {what}, found {text!r} ({problem})")

    def integer(self, *, minimum: int) -> int:
        number = self.number()
        if isinstance(number, float) and not number.is_integer():
            self.fail(f"expected a whole number, found {number}")
        if number < minimum:
            self.fail(f"expected a number of at least {minimum}, found {number}")
        return int(number)

    def _rate(self) -> float:
        number = self.number()
        if number < 0 or (number == 0 and ("_per_s" in self.key or "_hz" in self.key)):
            self.fail(f"expected a number above 0, found {number}")
        return float(number)

    def _flag(self) -> bool:
        text = self.text().lower()
        if text not in {"true", "false"}:
            self.fail(f"expected true or false, found {text!r}")
        return text == "true"

    def _found(self) -> str:
        if self.is_mapping:
            return "a mapping"
        return "a list" if self.is_list else "nothing" if self.is_null else f"{self.node.value!r}"


_READERS: Final[Mapping[Any, Callable[[Located], object]]] = {
    int: lambda one: one.integer(minimum=1), float: Located._rate, bool: Located._flag,
    Path: Located.file,
}  # fmt: skip
Sizes: TypeAlias = Annotated[tuple[int, ...], Located.sizes]


@cache
def list_parameters(make: Callable[..., object]) -> dict[str, tuple[Any, bool]]:
    """List the parameters of a function or a record: types, and whether they may be left out."""
    hints = get_type_hints(make, include_extras=True)
    return {
        name: (hints[name], one.default is not Parameter.empty)
        for name, one in signature(make).parameters.items()
    }


def load(path: Path, what: str, needs: str, error: type[InputError] = InputError) -> Located:
    """Compose with libyaml, ten times as fast; what it refuses, PyYAML explains."""
    text = read_text(path, what, error)
    depth = deepest = 0
    for sign in re.findall(r"[\[{\]}]", text):
        depth = depth + 1 if sign in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    node = None
    try:
        # libyaml crashes on what nests too deeply: such texts are left to PyYAML.
        if deepest <= 20 and not _NESTED_BLOCKS.search(text):
            with suppress(yaml.YAMLError):
                node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        node = node or yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as found:
        mark = found.problem_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        problem = found.problem or str(found)
        if "another document" in problem:
            problem = "found a second document; give each a file of its own"
        raise error(f"{path}:{place}: not valid YAML: {problem}") from found
    except yaml.YAMLError as found:  # for instance characters that YAML does not allow
        raise error(f"{path}: not valid YAML: {found}") from found
    except RecursionError as found:
        raise error(f"{path}:1: nested too deeply; {needs}, in few levels") from found
    if node is None:
        raise error(f"{path}:1: the file is empty; {needs}")
    return Located(node=node, path=path, what=what, folder=path.parent, error=error)


def read_text(path: Path, what: str, error: type[InputError] = InputError) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as found:
        raise error(f"{path}: the {what} cannot be read: {found.strerror or found}") from found
    except UnicodeDecodeError as found:
        msg = f"{path}: the {what} is no UTF-8 text ({found.reason} at byte {found.start})"
        raise error(msg) from found


def read_described(
    record: Callable[..., Made], root: Located, schema: str, remedy: str = ""
) -> Made:
    """Read a whole file: its schema, and the fields of a record."""
    found = root.list_arguments(record, also=("schema",)).get("schema")
    if found is None:
        root.fail("the key `schema` is missing")
    if found.raw_text() != schema:
        found.fail(f"expected {schema}, found {found.raw_text()!r}{remedy}")
    return root.call(record, without=("schema",))


def list_keys(path: Path) -> frozenset[str]:
    """List the keys of a YAML file, to tell its kind; none of one that cannot be read."""
    try:
        return frozenset(load(path, "file", "it needs keys").mapping())
    except InputError:
        return frozenset()


def combine_parameters(
    root: Located, section: Located | None, given: Mapping[str, Number]
) -> Iterator[dict[str, Number]]:
    """Combine the values of parameters, each of which may be computed from those before it."""
    entries = {} if section is None else section.mapping()
    unknown = sorted(set(given) - set(entries))
    if unknown:
        names = ", ".join(entries) or "none"
        root.fail(f"no parameter is called {', '.join(unknown)}; the parameters are: {names}")
    combined = iter([dict(root.names or {})])
    for name, value in entries.items():
        combined = _extend(combined, name, value, given)
    return combined


def _extend(
    combined: Iterable[dict[str, Number]], name: str, value: Located, given: Mapping[str, Number]
) -> Iterator[dict[str, Number]]:
    for names in combined:
        here = replace(value, names=names)
        values = [one.number() for one in (here.items() if here.is_list else [here])]
        if not values:
            here.fail("expected at least one number, found an empty list")
        for one in [given[name]] if name in given else values:
            yield {**names, name: one}


def make_ndrange(
    global_size: tuple[int, ...], local_size: Located | None, global_offset: Located | None
) -> NDRange:
    ndrange = NDRange(global_size=global_size)
    # One after the other, so that a complaint is about the key that is wrong.
    for key, entry, minimum in (("local_size", local_size, 1), ("global_offset", global_offset, 0)):
        if entry is not None:
            with entry.pointing_here():
                ndrange = replace(ndrange, **{key: entry.sizes(minimum=minimum)})
    return ndrange


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean `{close[0]}`?" if close else ""
