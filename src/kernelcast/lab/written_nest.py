"""Reads loops and accesses that somebody typed; complaints name the field and the place."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestAccess, NestArray, NestLoop
from kernelcast.features.written_accesses.parser import FUNCTIONS, KEYWORDS, Parser, Scope
from kernelcast.records.arguments import ElementType
from kernelcast.records.arithmetic import ArithmeticProblem, evaluate
from kernelcast.records.errors import InputError
from kernelcast.records.operations import OperationCounts

MOST_ACCESSES = 64
_MOST_LOOPS = 6
_LONGEST = 4000
_ITERATION = re.compile(r"\biteration\((\w+)\)")
_CONSTANT = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.+?)\s*")
_ARRAY = re.compile(r"\s*(?P<type>[A-Za-z_]\w*)\s+(?P<name>[A-Za-z_]\w*)(?P<extents>.*)")
_TYPES = {
    "double": "float64", "float": "float32", "half": "float16", "char": "int8", "short": "int16",
    "int": "int32", "long": "int64", "uint": "uint32", "float4": "float32x4",
}  # fmt: skip


class FieldError(Exception):
    """Is raised for what cannot be read of a field.

    Parameters
    ----------
    name : str
        The field.
    message : str
        What is wrong; the second and third line point at the place.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = _ITERATION.sub(r"\1", message)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenNestTask:
    """A loop nest as it was typed."""

    constants: str
    """``NAME = VALUE``, with commas or line ends between them."""
    loops: str
    """A line per loop, outermost first: ``y in range(1, ny - 1)``."""
    arrays: str
    """A line per array as in C, ``double a[ny][nx]`` or ``float b``; those that are missing are of
    `element` and have no known end."""
    loads: str
    stores: str
    """A line per access: ``a[y*nx + x + 1]``."""
    element: str = "double"
    """Type of arrays that are not declared."""


class _LoopScope(Scope):
    """Names in typed loops: their variables and constants, and nothing of OpenCL."""

    __slots__ = ()

    def find(self, name: str) -> Expr | None:
        """Give what a name stands for; None if it stands for no number."""
        return super().find(name) if name in self.loops or name in self.scalars else None

    def explain(self, name: str) -> str:
        """Say why a name cannot be used, and which ones can."""
        if name in self.arrays:
            return f"{name!r} is an array: an address that depends on data has no layer conditions"
        loops, constants = (", ".join(one) or "none" for one in (self.loops, self.scalars))
        return f"{name!r} is not known; the loops are: {loops}; the constants are: {constants}"


@dataclass(slots=True)
class _Reader:
    """What was read so far."""

    task: WrittenNestTask
    constants: dict[str, int] = field(default_factory=dict)
    loops: list[NestLoop] = field(default_factory=list)
    arrays: dict[str, NestArray] = field(default_factory=dict)
    types: dict[str, ElementType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenNest:
    """A loop nest that was read."""

    nest: LoopNest
    """Loops and accesses; constants are in it."""
    types: Mapping[str, ElementType]
    """Of its arrays."""


def read_written_nest(task: WrittenNestTask) -> WrittenNest:
    """Read a nest that was typed.

    Examples
    --------
    >>> found = read_written_nest(WrittenNestTask(
    ...     constants="n = 100", loops="i in range(1, n - 1)", arrays="",
    ...     loads="a[i - 1]", stores="b[i]",
    ... ))
    >>> [str(one.offset_bytes) for one in found.nest.accesses]
    ['8*iteration(i) - 8', '8*iteration(i)']
    """
    reader = _Reader(task)
    reader.constants = read_constants(task.constants)
    _read_loops(reader)
    _read_arrays(reader)
    accesses = [
        *_read_accesses(reader, "loads", task.loads),
        *_read_accesses(reader, "stores", task.stores),
    ]
    if not accesses:
        raise FieldError(
            name="loads", message="no access is given; write at least one, such as a[y*nx + x + 1]"
        )
    if len(accesses) > MOST_ACCESSES:
        raise FieldError(
            name="loads", message=f"{len(accesses)} accesses; give at most {MOST_ACCESSES}"
        )
    nest = LoopNest(
        name="typed loops",
        loops=tuple(reader.loops),
        arrays=tuple(reader.arrays.values()),
        accesses=tuple(accesses),
        executed=OperationCounts(operations={}, memory={}),
        constants=reader.constants,
    )
    return WrittenNest(nest=nest, types=reader.types)


def read_constants(text: str) -> dict[str, int]:
    """Read ``NAME = VALUE, ...``.

    Examples
    --------
    >>> read_constants("nx = 400, ny = 2 ** 4")
    {'nx': 400, 'ny': 16}
    """
    _check_length("constants", text)
    found: dict[str, int] = {}
    for part in re.split(r"[,;\n]", text):
        if not part.strip():
            continue
        match = _CONSTANT.fullmatch(part)
        if match is None:
            raise FieldError(name="constants", message=f"{part.strip()!r}: expected NAME = VALUE")
        name = match["name"]
        if name in KEYWORDS or name in FUNCTIONS:
            raise FieldError(
                name="constants", message=f"{name!r} has a meaning already; take another name"
            )
        try:
            value = evaluate(match["value"])
        except ArithmeticProblem as problem:
            raise FieldError(name="constants", message=f"{part.strip()!r}: {problem}") from problem
        if int(value) != value or value < 1:
            raise FieldError(
                name="constants", message=f"{name} = {value}: expected a whole number of at least 1"
            )
        found[name] = int(value)
    return found


def _lines(name: str, text: str) -> Iterator[tuple[int, str]]:
    _check_length(name, text)
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.strip().removesuffix(";").rstrip()


def _check_length(name: str, text: str) -> None:
    if len(text) > _LONGEST:
        raise FieldError(name=name, message=f"{len(text):,} characters; give at most {_LONGEST:,}")


def _scope(reader: _Reader) -> _LoopScope:
    values = {one.name: Expr.symbol(Symbol(SymbolKind.LOOP, one.name)) for one in reader.loops}
    return _LoopScope(scalars=tuple(reader.constants), arrays=tuple(reader.arrays), loops=values)


def _read_loops(reader: _Reader) -> None:
    for number, line in _lines("loops", reader.task.loops):
        try:
            reader.loops.append(_read_loop(line, reader))
        except InputError as error:
            raise FieldError(name="loops", message=f"line {number}: {error}") from error
    if not 1 <= len(reader.loops) <= _MOST_LOOPS:
        raise FieldError(
            name="loops",
            message=f"{len(reader.loops)} loops; give 1 to {_MOST_LOOPS}, outermost first",
        )


def _read_loop(line: str, reader: _Reader) -> NestLoop:
    parser = Parser(line, _scope(reader))
    parser.take("for")
    variable = parser.name()
    if variable.text in reader.constants or variable.text in {one.name for one in reader.loops}:
        parser.fail(f"{variable.text!r} has a meaning already; name the loop's otherwise", variable)
    start, stop, step = parser.loop_range()
    parser.end()
    if step.constant_value is None:
        parser.fail("expected a step that is a number")
    return NestLoop(name=variable.text, start=start, stop=stop, step=int(step.constant_value))


def _read_arrays(reader: _Reader) -> None:
    for number, line in _lines("arrays", reader.task.arrays):
        match = _ARRAY.fullmatch(line)
        if match is None:
            raise FieldError(
                name="arrays",
                message=f"line {number}: {line!r}: expected TYPE NAME[SIZE]..., as in C",
            )
        name = match["name"]
        try:
            extents = _read_extents(line, match.start("extents"), reader)
        except InputError as error:
            raise FieldError(name="arrays", message=f"line {number}: {error}") from error
        _declare(reader, name, match["type"], extents, f"line {number}: ")


def _read_extents(line: str, place: int, reader: _Reader) -> tuple[Expr, ...]:
    # Blanks for what stands before: places in complaints are those of the line.
    parser = Parser(" " * place + line[place:], _LoopScope(scalars=tuple(reader.constants)))
    found = []
    while parser.take("["):
        found.append(parser.expression())
        parser.expect("]")
    parser.end()
    return tuple(found)


def _declare(
    reader: _Reader, name: str, type_text: str, extents: tuple[Expr, ...], where: str
) -> NestArray:
    try:
        element = ElementType.parse(_TYPES.get(type_text, type_text))
    except InputError as error:
        raise FieldError(name="arrays", message=f"{where}{error}") from error
    array = NestArray(
        name=name, element_bytes=element.bytes, element_type=type_text, dimensions=extents
    )
    reader.arrays[name] = array
    reader.types[name] = element
    return array


def _read_accesses(reader: _Reader, key: str, text: str) -> Iterator[NestAccess]:
    for number, line in _lines(key, text):
        try:
            yield _read_access(line, reader, is_store=key == "stores", number=number)
        except InputError as error:
            raise FieldError(name=key, message=f"line {number}: {error}") from error


def _read_access(line: str, reader: _Reader, *, is_store: bool, number: int) -> NestAccess:
    parser = Parser(line, _scope(reader))
    name = parser.name()
    array = reader.arrays.get(name.text)
    if array is None:
        if name.text in reader.constants or name.text in {one.name for one in reader.loops}:
            parser.fail(f"{name.text!r} is no array", name)
        array = _declare(reader, name.text, reader.task.element, (), "")
    place = parser.next
    indices = []
    while parser.take("["):
        indices.append(parser.expression())
        parser.expect("]")
    parser.end()
    wanted = max(1, len(array.dimensions))
    if len(indices) not in {1, wanted}:
        parser.fail(
            f"{array.name!r} has {wanted} dimension{'s' * (wanted > 1)}, found {len(indices)} "
            "indices; declare it with its sizes, as in C, or give one index",
            place,
        )
    index = indices[0]
    if len(indices) > 1:
        for more, extent in zip(indices[1:], array.dimensions[1:], strict=True):
            index = index * extent + more
    return NestAccess(
        array=array.name,
        offset_bytes=index * array.element_bytes,
        is_store=is_store,
        bytes=array.element_bytes,
        text=line,
        line=number,
    )
