"""YAML values that know their line, so that every complaint can point at it."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeAlias

import yaml

from kernelcast.predictor.problem_file.arithmetic import ArithmeticProblem, evaluate
from kernelcast.records.errors import ProblemFileError

Number: TypeAlias = int | float
_NAME = re.compile(r"\{\s*([A-Za-z_]\w*)\s*\}")


@dataclass(frozen=True, slots=True)
class Located:
    """A YAML node with its file and the parameters that may be named in it.

    Parameters
    ----------
    node : yaml.Node
        The node.
    path : Path
        The file, for messages.
    key : str
        How the value is called, for messages.
    names : mapping of str to int or float
        Values of ``{NAME}``.
    """

    node: yaml.Node
    path: Path
    key: str = "problem"
    names: Mapping[str, Number] = field(default_factory=dict)

    def fail(self, complaint: str) -> NoReturn:
        """Raise an error that points at this value.

        Raises
        ------
        ProblemFileError
            Always.
        """
        msg = f"{self.path}:{self.node.start_mark.line + 1}: {self.key}: {complaint}"
        raise ProblemFileError(msg)

    def mapping(self, known: Sequence[str], required: Iterable[str] = ()) -> "dict[str, Located]":
        """Read a mapping whose keys are all known; unknown ones are named with the nearest."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail(f"expected `key: value` pairs ({', '.join(known)}), found {self._found()}")
        entries: dict[str, Located] = {}
        for key_node, value in self.node.value:
            key = str(key_node.value)
            entry = Located(key_node, self.path, key, self.names)
            if key in entries:
                entry.fail("is given twice; keep one")
            if key not in known:
                entry.fail(
                    f"unknown key{_nearest(key, known)}; the keys here are {', '.join(known)}"
                )
            entries[key] = Located(value, self.path, key, self.names)
        for key in required:
            if key not in entries:
                self.fail(f"the key `{key}` is missing")
        return entries

    def pairs(self) -> "dict[str, Located]":
        """Read a mapping with keys of the writer's choice."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail(f"expected `NAME: value` pairs, found {self._found()}")
        return {
            str(key.value): Located(value, self.path, str(key.value), self.names)
            for key, value in self.node.value
        }

    def items(self) -> "list[Located]":
        """Read a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail(f"expected a list, found {self._found()}")
        return [
            Located(item, self.path, f"{self.key}[{index}]", self.names)
            for index, item in enumerate(self.node.value)
        ]

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_null(self) -> bool:
        """Whether the value is left empty or null."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:null"

    def text(self) -> str:
        """Read a text, parameters filled in."""
        raw = self.raw_text()
        return _NAME.sub(lambda match: self._look_up(match[1]), raw)

    def raw_text(self) -> str:
        """Read a text as it stands."""
        if not isinstance(self.node, yaml.ScalarNode) or self.is_null:
            self.fail(f"expected a text, found {self._found()}")
        return str(self.node.value)

    def number(self) -> Number:
        """Read a number, or arithmetic over parameters such as ``"{N} * {N}"``."""
        text = self.text()
        try:
            return evaluate(text)
        except ArithmeticProblem as problem:
            self.fail(f"expected a number or arithmetic, found {text!r} ({problem})")

    def integer(self, *, minimum: int) -> int:
        """Read a whole number of at least `minimum`."""
        number = self.number()
        if isinstance(number, float) and not number.is_integer():
            self.fail(f"expected a whole number, found {number}")
        if number < minimum:
            self.fail(f"expected a number of at least {minimum}, found {number}")
        return int(number)

    def _look_up(self, name: str) -> str:
        if name not in self.names:
            known = ", ".join(self.names) or "none"
            self.fail(f"{{{name}}} is no parameter{_nearest(name, self.names)}; there are: {known}")
        return str(self.names[name])

    def _found(self) -> str:
        match self.node:
            case yaml.MappingNode():
                return "a mapping"
            case yaml.SequenceNode():
                return "a list"
            case _:
                return "nothing" if self.is_null else f"{self.node.value!r}"


def load(path: Path, text: str) -> Located:
    """Parse YAML text.

    Raises
    ------
    ProblemFileError
        If it is no YAML; gives line and column.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        msg = f"{path}:{place}: not valid YAML: {error.problem or error}"
        raise ProblemFileError(msg) from error
    except yaml.YAMLError as error:  # for instance characters that YAML does not allow
        msg = f"{path}: not valid YAML: {error}"
        raise ProblemFileError(msg) from error
    if node is None:
        msg = f"{path}:1: the file is empty; a problem needs source, kernel, global_size and args"
        raise ProblemFileError(msg)
    return Located(node, path)


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean `{close[0]}`?" if close else ""
