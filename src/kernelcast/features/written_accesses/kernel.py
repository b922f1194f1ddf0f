"""A kernel that exists as accesses and counts of operations only."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kernelcast.expressions import TRUE, Expr, Symbol, SymbolKind, floor_div, less, maximum
from kernelcast.expressions.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.kernel_facts import (
    ONCE,
    BlockFacts,
    BlockKind,
    CounterReach,
    KernelFacts,
    LocalArray,
    ParameterFacts,
)
from kernelcast.features.written_accesses.parser import (
    COORDINATES,
    FUNCTIONS,
    KEYWORDS,
    Parser,
    Scope,
    Token,
)
from kernelcast.records.arguments import ElementType
from kernelcast.records.errors import InputError
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)

_NAME = re.compile(r"[A-Za-z_]\w*")
_EXTENTS = re.compile(r"\d+(?:x\d+)*")
_SPACES = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenArray:
    """An array that accesses name."""

    name: str
    """Its name."""
    element: ElementType
    """Type of one element."""
    extents: tuple[Expr, ...] = ()
    """Elements per dimension, the first dimension contiguous in memory, over scalars; empty if
    nobody knows where the array ends."""
    space: MemorySpace = MemorySpace.GLOBAL
    """Global, constant or local memory."""
    shift_bytes: int = 0
    """Offset of its first byte from a 128-byte boundary."""

    def count_bytes(self, scalars: Mapping[str, int]) -> int | None:
        """Give its size in bytes; None if its extents are not known."""
        if not self.extents:
            return None
        values = bind_names(scalars)
        size = self.element.bytes
        for axis, extent in enumerate(self.extents):
            count = int(extent.evaluate(values))
            if count < 1:
                msg = f"array {self.name!r}: extent {axis} is {count}; give at least 1"
                raise InputError(msg)
            size *= count
        return size


def read_array(text: str, scalars: Collection[str] = ()) -> WrittenArray:
    """Read a declaration ``NAME:[SPACE ]TYPE[:EXTENTS]``, extents joined by ``x`` or commas."""
    name, _, rest = text.partition(":")
    type_text, _, extents = rest.partition(":")
    if not type_text:
        msg = f"array {text!r}: expected NAME:TYPE:EXTENTS, such as src:float64:640x512x512"
        raise InputError(msg)
    parts = extents.split("x") if _EXTENTS.fullmatch(extents) else extents.split(",")
    return make_array(name.strip(), type_text, [one for one in parts if extents], scalars)


def make_array(
    name: str, type_text: str, extents: Collection[str], scalars: Collection[str] = ()
) -> WrittenArray:
    """Make an array of the texts of its parts."""
    if not _NAME.fullmatch(name) or name in KEYWORDS or name in FUNCTIONS:
        msg = f"array {name!r}: give it a name of letters and digits that is no keyword"
        raise InputError(msg)
    words = type_text.split()
    space = next((one for one in _SPACES if words and words[0] == one.value), None)
    try:
        element = ElementType.parse(" ".join(words[1:] if space else words))
        sizes = tuple(_read_extent(one, scalars) for one in extents)
    except InputError as error:
        msg = f"array {name!r}: {error}"
        raise InputError(msg) from error
    return WrittenArray(
        name=name, element=element, extents=sizes, space=space or MemorySpace.GLOBAL
    )


def _read_extent(text: str, scalars: Collection[str]) -> Expr:
    parser = Parser(text, Scope(scalars=scalars))
    extent = parser.expression()
    parser.end()
    if not extent.is_parameter:
        parser.fail("an extent is a number, or made of scalars", parser.tokens[0])
    if extent.constant_value is not None and extent.constant_value < 1:
        parser.fail("an extent is at least 1", parser.tokens[0])
    return extent


def read_access(
    text: str,
    arrays: Mapping[str, WrittenArray],
    *,
    kind: AccessKind = AccessKind.LOAD,
    scalars: tuple[str, ...] = (),
    site: int = 0,
) -> MemoryAccess:
    """Read ``NAME[INDEX]... [for k in range(START, STOP, STEP)]... [if CONDITION]``."""
    parser = Parser(text, Scope(scalars=scalars, arrays=tuple(arrays)))
    start = _skip_indices(parser)
    loops = _read_loops(parser, site)
    guard = parser.condition() if parser.take("if") else TRUE
    parser.end()
    end, parser.position = parser.position, 0
    array = _read_array(parser, arrays)
    offset = _read_offset(parser, array)
    if parser.position != start:
        parser.fail(f"expected one of `[`, `for`, `if` or the end, found {parser.next.text!r}")
    parser.position = end
    return MemoryAccess(
        site=site, block=site, line=0, text=text.strip(), kind=kind, space=array.space,
        buffer=array.name, bytes=array.element.bytes, offset_bytes=offset,
        pattern=AddressPattern.QUASI_AFFINE, guard=guard, loops=loops,
    )  # fmt: skip


def _skip_indices(parser: Parser) -> int:
    """Go to what follows the indices, for they may name loops that stand behind them."""
    depth = 0
    while parser.next.kind != "end" and not (depth == 0 and parser.next.text in {"for", "if"}):
        depth += {"[": 1, "]": -1}.get(parser.next.text, 0)
        parser.position += 1
    return parser.position


def _read_loops(parser: Parser, site: int) -> tuple[LoopFacts, ...]:
    loops: list[LoopFacts] = []
    while parser.take("for"):
        variable = parser.name()
        _check_free(parser, variable)
        start, stop, step = parser.loop_range()
        name = f"{site}:{variable.text}"
        iteration = Expr.symbol(Symbol(SymbolKind.LOOP, name))
        value = start + step * iteration
        # C rounds upwards here; a step that is a scalar counts upwards.
        is_upwards = step.constant_value is None or step.constant_value > 0
        gap, width = (stop - start, step) if is_upwards else (start - stop, -step)
        loops.append(LoopFacts(
            name=name, line=0, is_exact=True,
            condition=less(value, stop) if is_upwards else less(stop, value),
            trip_count=maximum(floor_div(gap + width - 1, width), 0),
        ))  # fmt: skip
        known = {**parser.scope.loops, variable.text: value}
        parser.scope = replace(parser.scope, loops=known)
    return tuple(loops)


def _check_free(parser: Parser, variable: Token) -> None:
    scope = parser.scope
    if variable.text in COORDINATES or variable.text in scope.loops or (
        variable.text in scope.scalars or variable.text in scope.arrays
    ):  # fmt: skip
        parser.fail(f"{variable.text!r} has a meaning already; name the loop's otherwise", variable)


def _read_array(parser: Parser, arrays: Mapping[str, WrittenArray]) -> WrittenArray:
    name = parser.name()
    array = arrays.get(name.text)
    if array is None:
        declared = ", ".join(arrays) or "none"
        parser.fail(
            f"array {name.text!r} is not declared; declared are: {declared}. Declare it as "
            f"{name.text}:TYPE:EXTENTS",
            name,
        )
    return array


def _read_offset(parser: Parser, array: WrittenArray) -> Expr:
    place = parser.next
    indices: list[Expr] = []
    while parser.take("["):
        indices.append(parser.expression())
        while parser.take(","):
            indices.append(parser.expression())
        parser.expect("]")
    wanted = max(1, len(array.extents))
    if len(indices) != wanted:
        parser.fail(
            f"{array.name!r} has {wanted} dimension{'s' * (wanted > 1)}, found {len(indices)} "
            "indices; give one per dimension, the contiguous one first",
            place,
        )
    element = Expr.constant(0)
    stride = Expr.constant(1)
    for index, extent in zip(indices, array.extents or (stride,), strict=True):
        element, stride = element + index * stride, stride * extent
    return element * array.element.bytes


_F, _I, _K = NumberClass.FLOAT, NumberClass.INTEGER, OperationKind
OPERATIONS = {
    "fp16": Operation(kind=_K.ADD, number=_F, bits=16),
    "fp16_fma": Operation(kind=_K.FUSED, number=_F, bits=16),
    "fp32": Operation(kind=_K.ADD, number=_F, bits=32),
    "fp32_fma": Operation(kind=_K.FUSED, number=_F, bits=32),
    "fp64": Operation(kind=_K.ADD, number=_F, bits=64),
    "fp64_fma": Operation(kind=_K.FUSED, number=_F, bits=64),
    "int32": Operation(kind=_K.ADD, number=_I, bits=32),
    "native_special": Operation(kind=_K.SPECIAL_NATIVE, number=_F, bits=32),
    "special": Operation(kind=_K.SPECIAL, number=_F, bits=32),
    "barrier": Operation(kind=_K.BARRIER),
}
"""Names of operations that can be counted by hand; a fused multiply-add is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenKernel:
    """A kernel as somebody wrote down what it touches."""

    name: str
    """For messages and tables."""
    arrays: tuple[WrittenArray, ...]
    """Every array that is accessed."""
    accesses: tuple[MemoryAccess, ...]
    """Of one work-item, see `read_access`; their sites are 0, 1, 2 and so on."""
    scalars: Mapping[str, int] = field(default_factory=dict)
    """Values of the names in expressions."""
    operations: Mapping[str, float] = field(default_factory=dict)
    """How many of `OPERATIONS` a work-item executes."""

    def __post_init__(self) -> None:
        names = [one.name for one in self.arrays]
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            msg = f"array {twice!r} is declared twice; keep one declaration"
            raise InputError(msg)
        if not self.accesses:
            msg = "no access is given; write at least one, such as src[x-1][y]"
            raise InputError(msg)
        for name, count in self.operations.items():
            if name not in OPERATIONS or count < 0:
                msg = (
                    f"operation {name}={count}: expected a count of at least 0 of one of "
                    f"{', '.join(OPERATIONS)}"
                )
                raise InputError(msg)

    def facts(self) -> KernelFacts:
        """Give what analysis would have found, had there been a source."""
        guarded = [one for one in self.accesses if not _runs_once(one)]
        counters = {one.site: number for number, one in enumerate(guarded)}
        loops = {loop.name: loop for one in self.accesses for loop in one.loops}
        local = [one for one in self.arrays if one.space is MemorySpace.LOCAL]
        return KernelFacts(
            kernel=self.name,
            line=0,
            parameters=tuple(self._describe(one) for one in self.arrays),
            local_arrays=tuple(
                LocalArray(name=one.name, bytes=one.count_bytes(self.scalars) or 0) for one in local
            ),
            blocks=tuple(self._make_blocks(counters)),
            counter_count=len(counters),
            reaches=tuple(
                CounterReach(counter=counters[one.site], guard=one.guard, loops=one.loops)
                for one in guarded
            ),
            accesses=self.accesses,
            loops=tuple(loops.values()),
            gaps=(),
        )

    def _describe(self, array: WrittenArray) -> ParameterFacts:
        kinds = {one.kind for one in self.accesses if one.buffer == array.name}
        return ParameterFacts(
            name=array.name, type_name=str(array.element), space=array.space, is_pointer=True,
            is_const=AccessKind.STORE not in kinds, is_restrict=True, is_volatile=False,
            element_bytes=array.element.bytes,
            is_read=bool(kinds - {AccessKind.STORE}), is_written=bool(kinds - {AccessKind.LOAD}),
        )  # fmt: skip

    def _make_blocks(self, counters: Mapping[int, int]) -> list[BlockFacts]:
        """Make one block per access, for each may have a guard and loops of its own."""
        written = {OPERATIONS[name]: count for name, count in self.operations.items() if count}
        counts = [OperationCounts(operations=written, memory={})]
        counts += [_count(one) for one in self.accesses]
        keys = [ONCE, *(counters.get(one.site, ONCE) for one in self.accesses)]
        return [
            BlockFacts(
                id=number, function=self.name, line=0,
                kind=BlockKind.ENTRY if key == ONCE else BlockKind.ACCESS,
                last_line=0, parent=0 if number else None, count=((key, 1),),
                operations=operations,
            )
            for number, (key, operations) in enumerate(zip(keys, counts, strict=True))
        ]  # fmt: skip


def _runs_once(access: MemoryAccess) -> bool:
    return access.guard == TRUE and not access.loops


def _count(access: MemoryAccess) -> OperationCounts:
    """Count an access as the analysis of a source does: atomics are operations, not memory."""
    if access.kind is AccessKind.ATOMIC:
        atomic = Operation(kind=_K.ATOMIC, number=_I, bits=8 * access.bytes)
        return OperationCounts(operations={atomic: 1.0}, memory={})
    operation = MemoryOperation(
        space=access.space, is_store=access.kind is AccessKind.STORE, bytes=access.bytes
    )
    return OperationCounts(operations={}, memory={operation: 1.0})
