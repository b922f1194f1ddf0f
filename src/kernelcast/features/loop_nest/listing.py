"""Parses a listing: declarations and a loop nest, as they stand within a function."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clang import cindex

from kernelcast.expressions import Symbol
from kernelcast.expressions.axes import bind_names
from kernelcast.features.diagnostics import describe_errors, read_errors
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.records.errors import InputError

_FILE = "/kernelcast-virtual/listing.c"
_HEADER_FILE = "/kernelcast-virtual/listing.h"
_OPENING = "void kernelcast_listing(void) {\n"
_OPTIONS = ("-x", "c", "-std=gnu99", "-w", "-nostdinc", "-fno-spell-checking",
            "-ferror-limit=0", "-include", _HEADER_FILE)  # fmt: skip
_ONE = "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh erf"
_TWO = "pow hypot atan2 fmod fmin fmax"
_UNDECLARED = re.compile(r"use of undeclared identifier '(\w+)'")
_INCLUDE = re.compile(r"^([ \t]*)#[ \t]*(include|pragma)[^\n]*", re.MULTILINE)


def _declare_functions() -> str:
    """Declare functions of math.h that may stand in a loop, and those of its bounds."""
    lines: list[str] = []
    for kind, suffix in (("double", ""), ("float", "f")):
        names = (*_ONE.split(), "fabs", "floor", "ceil")
        lines.extend(f"{kind} {name}{suffix}({kind});" for name in names)
        lines.extend(f"{kind} {name}{suffix}({kind}, {kind});" for name in _TWO.split())
        lines.append(f"{kind} fma{suffix}({kind}, {kind}, {kind});")
    lines.extend(f"long {name}(long, long);" for name in ("min", "MIN", "max", "MAX"))
    return "\n".join(lines) + "\n"


_HEADER = _declare_functions()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listing:
    """A parsed listing."""

    name: str
    """For messages."""
    tree: SyntaxTree
    """Keeps the nodes alive."""
    statements: tuple[Node, ...]
    """What stands in it."""
    constants: frozenset[str]
    """Names that it uses and does not declare."""
    values: Mapping[Symbol, int]
    """Values known of constants: the step of a loop must be."""

    def refusal(self, node: Node, problem: str) -> InputError:
        """Give an error that names line and column of a node."""
        place = ""
        if node.span:
            places = self.tree.places
            line = places.line_of(node.span.start) - 1  # the opening of the function
            place = f":{line}:{places.column_of(node.span.start)}"
        return InputError(f"{self.name}{place}: {problem}")

    def line_of(self, node: Node) -> int:
        """Give the line of a node in the listing, from 1."""
        return node.line - 1


def parse_listing(source: str, constants: Mapping[str, int], name: str) -> Listing:
    """Parse a listing; names that it does not declare are constants.

    Raises
    ------
    InputError
        If it is not C99, or holds more than declarations and statements.
    """
    text = _OPENING + _INCLUDE.sub(lambda found: " " * len(found[0]), source) + "\n}"
    unit = _parse(text, ())
    unknown = {found[1] for found in map(_UNDECLARED.fullmatch, read_errors(unit)) if found}
    if unknown:
        unit = _parse(text, sorted(unknown))
    errors = list(describe_errors(unit, _FILE, name))
    if errors:
        msg = f"{_shift_line(errors[0], name)}; give C99 declarations and one loop nest"
        raise InputError(msg)
    tree = SyntaxTree(unit, text, _FILE)
    function = tree.function_named("kernelcast_listing")
    body = function.children[-1] if function else None
    statements = tuple(body.children) if body else ()
    # A declaration that names a constant declares nothing in the first look.
    declared = {
        one.spelling for each in statements if each.kind == kinds.DECLARATION
        for one in each.children
    }  # fmt: skip
    return Listing(
        name=name, tree=tree, statements=statements,
        constants=frozenset((unknown | set(constants)) - declared),
        values=bind_names(constants),
    )  # fmt: skip


def _parse(text: str, names: Iterable[str]) -> cindex.TranslationUnit:
    header = _HEADER + "".join(f"extern const long {one};\n" for one in names)
    try:
        return cindex.Index.create().parse(
            _FILE, args=list(_OPTIONS), unsaved_files=[(_FILE, text), (_HEADER_FILE, header)]
        )
    except cindex.TranslationUnitLoadError as error:
        msg = "libclang can make nothing of this listing; is it C99?"
        raise InputError(msg) from error


def _shift_line(message: str, name: str) -> str:
    """Count lines from the beginning of the listing, not of the function around it."""
    found = re.match(rf"{re.escape(name)}:(\d+):", message)
    if not found:
        return message
    return f"{name}:{int(found[1]) - 1}:{message[found.end() :]}"


def is_loop(node: Node) -> bool:
    """Tell a loop of any kind."""
    return node.kind in kinds.LOOPS
