"""The syntax tree: nodes of the functions that a source defines."""

from collections.abc import Collection, Iterator
from functools import cached_property

from clang import cindex

from kernelcast.features.interpreter import paused_collector
from kernelcast.features.syntax import bindings as clang
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.places import SourcePlaces, Span
from kernelcast.features.syntax.types import TypeInfo, TypeReader

_SKIPPED = kinds.REFERENCES | kinds.ATTRIBUTES
_TOP_LEVEL = frozenset((kinds.FUNCTION, kinds.VARIABLE))
_INTEGER_RESULT, _FLOAT_RESULT = 1, 2
_LITERALS = frozenset((kinds.INTEGER, kinds.FLOATING, kinds.CHARACTER, kinds.SIZE_OF))
_FOLDABLE = frozenset((kinds.BINARY, kinds.UNARY, kinds.CONDITIONAL, kinds.CAST))


class Node:
    """One declaration, statement or expression.

    Attributes
    ----------
    kind : int
        One of `kinds`.
    key : int
        Identity of the declaration or statement within its unit.
    children : list of Node
        In the order of the source.
    implicit : Implicit or None
        What an unexposed expression does, once `classify` has found out.
    """

    __slots__ = (
        "_constant", "_operator", "_referenced", "_span", "_spelling", "_type", "children",
        "cursor", "implicit", "key", "kind", "unit",
    )  # fmt: skip

    def __init__(self, kind: int, key: int, cursor: clang.CXCursor, unit: "Unit") -> None:
        self.kind = kind
        self.key = key
        self.cursor = cursor
        self.unit = unit
        self.children: list[Node] = []
        self.implicit: kinds.Implicit | None = None
        self._spelling: str | None = None
        self._type: TypeInfo | None = None
        self._operator = -1
        self._span: Span | bool | None = False
        self._referenced: clang.CXCursor | None = None
        self._constant: int | float | bool | None = False

    @property
    def type(self) -> TypeInfo:
        """Type of the expression's value, or of the variable."""
        if self._type is None:
            self._type = self.unit.types.read(clang.cursor_type(self.cursor))
        return self._type

    @property
    def operator(self) -> int:
        """Which operator a unary, binary or assignment node is."""
        if self._operator < 0:
            ask = clang.unary_operator if self.kind == kinds.UNARY else clang.binary_operator
            self._operator = ask(self.cursor)
        return self._operator

    @property
    def span(self) -> Span | None:
        """Where it stands; None where that is another file."""
        if isinstance(self._span, bool):
            self._span = self.unit.places.span(self.cursor)
        return self._span

    @property
    def line(self) -> int:
        """Line of its beginning, from 1; 0 if it is in another file."""
        span = self.span
        return self.unit.places.line_of(span.start) if span else 0

    @property
    def spelling(self) -> str:
        """Name of a declaration, a called function or a member."""
        if self._spelling is None:
            self._spelling = clang.take_string(clang.cursor_spelling(self.cursor))
        return self._spelling

    @property
    def referenced_key(self) -> int:
        """Identity of the declaration that a reference means; 0 if there is none."""
        return self.referenced.first or 0

    @property
    def is_enumerator(self) -> bool:
        """Whether it names a constant of an enumeration."""
        return bool(self.referenced.kind == kinds.ENUM_CONSTANT)

    @property
    def is_placeholder(self) -> bool:
        """Whether it names a constant that the source does not define."""
        return self.is_enumerator and self.spelling in self.unit.placeholders

    @property
    def constant(self) -> int | float | None:
        """Value of an expression that the compiler can compute, None for any other."""
        if isinstance(self._constant, bool):
            self._constant = self._fold()
        return self._constant

    def text(self) -> str:
        """Give its source text; empty if it is in another file."""
        return self.unit.places.text(self.span) if self.span else ""

    def walk(self) -> Iterator["Node"]:
        """Give the node and all below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    @property
    def referenced(self) -> clang.CXCursor:
        """Declaration that it means; all zero if there is none."""
        if self._referenced is None:
            self._referenced = clang.cursor_referenced(self.cursor)
        return self._referenced

    def _fold(self) -> int | float | None:
        """Ask libclang only about what can be constant: asking is slow."""
        node = strip(self)
        while node.kind == kinds.UNEXPOSED and len(node.children) == 1:
            node = strip(node.children[0])
        if node.kind in _LITERALS:
            return node.evaluate()
        if node.kind == kinds.DECLARATION_REFERENCE:
            return node.evaluate() if node.is_enumerator and not node.is_placeholder else None
        if node.kind not in _FOLDABLE or any(child.constant is None for child in node.children):
            return None
        if node.kind == kinds.BINARY and node.operator in (kinds.ASSIGN, kinds.COMMA):
            return None
        return node.evaluate()

    def evaluate(self) -> int | float | None:
        """Give the value of a constant expression, as the compiler computes it."""
        found = clang.evaluate(self.cursor)
        if not found:
            return None
        try:
            kind = clang.result_kind(found)
            if kind == _INTEGER_RESULT:
                return int(clang.result_integer(found))
            return float(clang.result_double(found)) if kind == _FLOAT_RESULT else None
        finally:
            clang.dispose_result(found)


class Unit:
    """What nodes ask about the whole unit.

    It does not refer back to them: what refers to itself waits for Python's collector, whose
    searches through such trees took a third of the analysis.

    Parameters
    ----------
    main_file : str
        The name it was parsed by.
    placeholders : frozenset of str
        Names of constants that stand in for those that the source does not define.
    """

    def __init__(
        self,
        handle: cindex.TranslationUnit,
        source: bytes,
        main_file: str,
        placeholders: frozenset[str],
    ) -> None:
        self.handle = handle  # the cursors point into it
        self.placeholders = placeholders
        self.types = TypeReader()
        self.places = SourcePlaces(source, main_file)

    def members_of(self, node: Node) -> list[tuple[int, TypeInfo]]:
        """Give offset in bytes and type of the members of an expression's structure."""
        found: list[tuple[int, TypeInfo]] = []

        def note(cursor: clang.CXCursor, _: clang.CXCursor, __: int) -> int:
            if cursor.kind == kinds.FIELD:
                offset = clang.field_offset_bits(cursor) // 8
                found.append((offset, self.types.read(clang.cursor_type(cursor))))
            return clang.CONTINUE

        plain = clang.canonical_type(clang.cursor_type(node.cursor))
        declaration = clang.type_declaration(plain)
        if declaration.kind == kinds.STRUCT:
            clang.visit(declaration, note)
        return found


class SyntaxTree:
    """All functions and file-scope variables of a unit, wherever they are defined.

    Parameters
    ----------
    main_file : str
        The name it was parsed by.
    placeholders : collection of str
        Names of constants that stand in for those that the source does not define.
    """

    def __init__(
        self,
        unit: cindex.TranslationUnit,
        source: str,
        main_file: str,
        placeholders: Collection[str] = (),
    ) -> None:
        self._unit = Unit(unit, source.encode(errors="replace"), main_file, frozenset(placeholders))
        self.places = self._unit.places
        self.functions: dict[int, Node] = {}
        self.variables: dict[int, Node] = {}
        self._undefined: list[clang.CXCursor] = []
        self._definitions: dict[int, int] = {}
        with paused_collector():
            self._read_top_level()

    @cached_property
    def declarations(self) -> list[Node]:
        """Functions that are declared and not defined there, the header's too."""
        return [self._read(cursor) for cursor in self._undefined]

    def function_named(self, name: str) -> Node | None:
        """Find the definition of a function."""
        for node in self.functions.values():
            if node.spelling == name:
                return node
        return None

    def definition_of(self, call: Node) -> Node | None:
        """Find the function that a call runs; None for a builtin or a mere declaration."""
        target = call.referenced
        if not target.first:
            return None
        known = self.functions.get(target.first)
        if known is not None:
            return known
        if target.first not in self._definitions:
            definition = clang.cursor_definition(target)
            self._definitions[target.first] = definition.first or 0
        return self.functions.get(self._definitions[target.first])

    def _read_top_level(self) -> None:
        for cursor in clang.list_top_level(self._unit.handle.obj, _TOP_LEVEL):
            if cursor.kind == kinds.VARIABLE:
                node = self._read(cursor)
                self.variables[node.key] = node
            elif clang.is_definition(cursor):
                node = self._read(cursor)
                self.functions[node.key] = node
            else:
                self._undefined.append(cursor)

    def _read(self, cursor: clang.CXCursor) -> Node:
        root = Node(cursor.kind, cursor.first, cursor, self._unit)
        unit, nodes = self._unit, {root.key: root}

        def note(child: clang.CXCursor, parent: clang.CXCursor, _: int) -> int:
            kind = child.kind
            if kind in _SKIPPED:
                return clang.CONTINUE
            above = parent.first if parent.kind <= kinds.LAST_DECLARATION else parent.second
            key = child.first if kind <= kinds.LAST_DECLARATION else child.second
            node = Node(kind, key, child, unit)
            nodes[key] = node
            nodes[above].children.append(node)
            return clang.RECURSE

        clang.visit(cursor, note)
        return root


def strip(node: Node) -> Node:
    """Give what stands within parentheses."""
    while node.kind == kinds.PARENTHESES and node.children:
        node = node.children[0]
    return node
