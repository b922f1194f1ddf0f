"""YAML values that know their line, so that every complaint can point at it."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, NoReturn, Self, TypeAlias, TypeVar

import yaml

from kernelcast.records.arithmetic import ArithmeticProblem, evaluate, holds
from kernelcast.records.errors import InputError, ProblemFileError
from kernelcast.records.ndrange import NDRange

Number: TypeAlias = int | float
_NESTED_BLOCKS = re.compile(r"^\s{200}|(?:[-?:]\s+){20}", re.MULTILINE)
_NAME = re.compile(r"\{\s*([A-Za-z_]\w*)\s*\}")


@dataclass(frozen=True, slots=True)
class Located:
    """A YAML node with its file and the parameters that may be named in it."""

    error: ClassVar[type[InputError]] = ProblemFileError
    """What `fail` raises; files of another kind have a subclass with their own."""
    whole: ClassVar[str] = "a problem needs source, kernel, global_size and args"
    """What an empty file lacks."""

    node: yaml.Node
    path: Path
    key: str = "problem"
    """How the value is called, for messages."""
    names: Mapping[str, Number] = field(default_factory=dict)
    """Values of ``{NAME}``."""

    def fail(self, complaint: str) -> NoReturn:
        msg = f"{self.path}:{self.node.start_mark.line + 1}: {self.key}: {complaint}"
        # YAML can spell halves of characters ("\ud800"), which no terminal takes.
        raise self.error(msg.encode(errors="backslashreplace").decode())

    @contextmanager
    def pointing_here(self) -> Iterator[None]:
        """Let what is refused meanwhile point at this value, unless it points at one already."""
        try:
            yield
        except InputError as error:
            if isinstance(error, self.error):
                raise
            self.fail(str(error))

    def mapping(self, known: Sequence[str], required: Iterable[str] = ()) -> dict[str, Self]:
        """Read a mapping whose keys are all known; unknown ones are named with the nearest."""
        entries = self._read_keys(f"`key: value` pairs ({', '.join(known)})", known)
        for key in required:
            if key not in entries:
                self.fail(f"the key `{key}` is missing")
        return entries

    def pairs(self) -> dict[str, Self]:
        """Read a mapping with keys of the writer's choice."""
        return self._read_keys("`NAME: value` pairs", None)

    def _read_keys(self, expected: str, known: Sequence[str] | None) -> dict[str, Self]:
        if not isinstance(self.node, yaml.MappingNode):
            self.fail(f"expected {expected}, found {self._found()}")
        entries: dict[str, Self] = {}
        for key_node, value in self.node.value:
            key = str(key_node.value)
            if key in entries:
                self._at(key_node, key).fail("is given twice; keep one")
            if known is not None and key not in known:
                close = _nearest(key, known)
                told = f"unknown key{close}; the keys here are {', '.join(known)}"
                self._at(key_node, key).fail(told)
            entries[key] = self._at(value, key)
        return entries

    def items(self) -> list[Self]:
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail(f"expected a list, found {self._found()}")
        return [
            replace(self, node=item, key=f"{self.key}[{index}]")
            for index, item in enumerate(self.node.value)
        ]

    def _at(self, node: yaml.Node, key: str) -> Self:
        return replace(self, node=node, key=key)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_null(self) -> bool:
        """Whether the value is left empty or null."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:null"

    def text(self) -> str:
        """Read a text, parameters filled in."""
        return _NAME.sub(lambda match: str(self._look_up(match[1])), self.raw_text())

    def raw_text(self) -> str:
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null:
            hint = '; write "{NAME}" in quotes' if isinstance(self.node, yaml.MappingNode) else ""
            self.fail(f"expected a text, found {self._found()}{hint}")
        text = str(self.node.value)
        half = next((sign for sign in text if "\ud800" <= sign <= "\udfff"), None)
        if half is not None:
            self.fail(f"found {half!r}, half of a character; write the whole character")
        return text

    def choice(self, known: Iterable[str], *, also: str = "") -> str:
        text, words = self.text(), [*known]
        if text not in words:
            names = ", ".join([*words, *([also] if also else [])])
            self.fail(f"expected one of {names}; found {text!r}")
        return text

    def sizes(self, *, minimum: int) -> tuple[int, ...]:
        """Read one to three whole numbers; a single one stands for a list of one."""
        items = self.items() if self.is_list else [self]
        if self.is_null or not 1 <= len(items) <= 3:
            found = "nothing" if self.is_null else len(items)
            self.fail(f"expected one to three numbers, found {found}")
        return tuple(item.integer(minimum=minimum) for item in items)

    def file(self, folder: Path) -> Path:
        """Read the name of a file that is there, relative to a folder."""
        path = folder / self.text()
        try:
            is_there = path.is_file()
        except OSError as error:  # for instance a name longer than the file system takes
            self.fail(f"the file {path} cannot be found: {error.strerror or error}")
        if not is_there:
            self.fail(f"there is no file {path}")
        return path

    def number(self) -> Number:
        """Read a number, or arithmetic over parameters such as ``"{N} * {N}"``."""
        # Values, not text: N = -2 makes "{N} ** 2" 4.
        text = _NAME.sub(lambda match: f"({self._look_up(match[1])})", self.raw_text())
        try:
            return evaluate(text)
        except ArithmeticProblem as problem:
            self.fail(f"expected a number or arithmetic, found {text!r} ({problem})")

    def holds(self) -> bool:
        text = _NAME.sub(lambda match: f"({self._look_up(match[1])})", self.raw_text())
        try:
            return holds(text)
        except ArithmeticProblem as problem:
            self.fail(f"expected a condition over numbers, found {text!r} ({problem})")

    def integer(self, *, minimum: int) -> int:
        number = self.number()
        if isinstance(number, float) and not number.is_integer():
            self.fail(f"expected a whole number, found {number}")
        if number < minimum:
            self.fail(f"expected a number of at least {minimum}, found {number}")
        return int(number)

    def _look_up(self, name: str) -> Number:
        if name not in self.names:
            known = ", ".join(self.names) or "none"
            self.fail(f"{{{name}}} is no parameter{_nearest(name, self.names)}; there are: {known}")
        return self.names[name]

    def _found(self) -> str:
        match self.node:
            case yaml.MappingNode():
                return "a mapping"
            case yaml.SequenceNode():
                return "a list"
            case _:
                return "nothing" if self.is_null else f"{self.node.value!r}"


Entry = TypeVar("Entry", bound=Located)


def load(path: Path, text: str, kind: type[Entry]) -> Entry:
    """Compose with libyaml, ten times as fast; what it refuses, PyYAML explains."""
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
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        problem = error.problem or str(error)
        if "another document" in problem:
            problem = "found a second document; give each a file of its own"
        raise kind.error(f"{path}:{place}: not valid YAML: {problem}") from error
    except yaml.YAMLError as error:  # for instance characters that YAML does not allow
        raise kind.error(f"{path}: not valid YAML: {error}") from error
    except RecursionError as error:
        raise kind.error(f"{path}:1: nested too deeply; {kind.whole}, in few levels") from error
    if node is None:
        raise kind.error(f"{path}:1: the file is empty; {kind.whole}")
    return kind(node, path)


def read_text(path: Path, what: str, error: type[InputError] = ProblemFileError) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as found:
        raise error(f"{path}: the {what} cannot be read: {found.strerror or found}") from found
    except UnicodeDecodeError as found:
        msg = f"{path}: the {what} is no UTF-8 text ({found.reason} at byte {found.start})"
        raise error(msg) from found


def pairs_of(entry: Entry | None) -> dict[str, Entry]:
    """Read a mapping that may be left out."""
    return {} if entry is None or entry.is_null else entry.pairs()


def list_of(entry: Entry | None) -> list[Entry]:
    return [] if entry is None or entry.is_null else entry.items()


def items_of(entry: Entry | None) -> list[Entry]:
    """Read a list, or one value in its place, that may be left out."""
    if entry is None or entry.is_null:
        return []
    return entry.items() if entry.is_list else [entry]


def read_numbers(
    root: Entry,
    entries: Mapping[str, Entry],
    given: Mapping[str, Number],
    known: Mapping[str, Number] | None = None,
) -> dict[str, Number]:
    """Read parameters, each of which may be computed from those before it."""
    check_names(root, given, entries)
    names = dict(known or {})
    for name, value in entries.items():
        names[name] = given.get(name, replace(value, names=names).number())
    return names


def check_names(root: Located, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        names = ", ".join(known) or "none"
        root.fail(f"no parameter is called {', '.join(unknown)}; the parameters are: {names}")


def read_ndrange(entries: Mapping[str, Located]) -> NDRange:
    ndrange = NDRange(global_size=entries["global_size"].sizes(minimum=1))
    # One after the other, so that a complaint is about the key that is wrong.
    for key, minimum in (("local_size", 1), ("global_offset", 0)):
        entry = entries.get(key)
        if entry is not None and not entry.is_null:
            with entry.pointing_here():
                ndrange = replace(ndrange, **{key: entry.sizes(minimum=minimum)})
    return ndrange


def list_keys(path: Path) -> frozenset[str]:
    """List the keys of a YAML file, to tell its kind; none of one that cannot be read."""
    try:
        return frozenset(load(path, path.read_text(encoding="utf-8"), Located).pairs())
    except (OSError, UnicodeDecodeError, InputError):
        return frozenset()


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean `{close[0]}`?" if close else ""
