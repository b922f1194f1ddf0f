"""A kernel that exists as accesses and counts of operations only, typed as text."""

import ast
import difflib
import functools
import keyword
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, TypeAlias

from kernelcast.expressions import (
    TRUE,
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
    floor_div,
    less,
    less_equal,
    maximum,
    minimum,
    not_equal,
    trunc_div,
    trunc_mod,
)
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
from kernelcast.expressions.symbols import ID_FUNCTIONS
from kernelcast.records.arguments import ElementType
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)

_EXTENTS: Final = re.compile(r"\d+(?:x\d+)*")
_SPACES: Final = (MemorySpace.GLOBAL, MemorySpace.CONSTANT, MemorySpace.LOCAL)
_SIGNS: Final = {"&&": " and ", "||": " or ", "!": " not "}
_COORDINATES: Final = {
    f"{prefix}{letter}": Expr.symbol(Symbol(kind, axis=axis))
    for prefix, kind in (
        ("", SymbolKind.GLOBAL_ID), ("local_", SymbolKind.LOCAL_ID), ("group_", SymbolKind.GROUP_ID)
    )
    for axis, letter in enumerate("xyz")
}  # fmt: skip
_EXTREMA: Final = {"min": minimum, "max": maximum}
_RESERVED: Final = frozenset({"range", "min", "max", *ID_FUNCTIONS, *keyword.kwlist})
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Expr, Expr], Condition]]] = {
    ast.Lt: less,
    ast.LtE: less_equal,
    ast.Gt: lambda left, right: less(right, left),
    ast.GtE: lambda left, right: less_equal(right, left),
    ast.Eq: equal,
    ast.NotEq: not_equal,
}
_Term: TypeAlias = Expr | Condition


class _Text:
    """A formula, read as Python does but for C's division and C's signs for and, or, not."""

    def __init__(self, text: str, scalars: Collection[str], arrays: Collection[str] = ()) -> None:
        text = re.sub(r"&&|\|\||!(?!=)", lambda one: _SIGNS[one[0]], text)
        self._text = text.replace("\n", " ")
        self._scalars, self._arrays = scalars, arrays
        self._names = _COORDINATES | {
            one: Expr.symbol(Symbol(SymbolKind.SCALAR, one)) for one in scalars
        }
        has_if, has_for = (re.search(rf"\b{word}\b", text) for word in ("if", "for"))
        ending = " else 0" if has_if and not has_for else ""
        try:
            self.root = ast.parse(f"({self._text}{ending})", mode="eval").body
        except SyntaxError as error:
            raise self._point(f"cannot be read: {error.msg}", (error.offset or 0) - 2) from None
        except (ValueError, RecursionError, MemoryError):
            raise self._point("nested too deeply; write a simpler expression", 0) from None

    def _point(self, complaint: str, place: int) -> InputError:
        place = min(max(place, 0), len(self._text))
        msg = f"{complaint}\n  {self._text}\n  {' ' * place}^"
        return InputError(msg)

    def error(self, complaint: str, node: ast.expr) -> InputError:
        return self._point(complaint, node.col_offset - 1)

    def number(self, node: ast.expr) -> Expr:
        term = self._term(node)
        if isinstance(term, Condition):
            raise self.error("expected a number, found a condition", node)
        return term

    def condition(self, node: ast.expr) -> Condition:
        term = self._term(node)
        if isinstance(term, Expr):
            raise self.error("expected a condition such as `x < n`, found a number", node)
        return term

    def _term(self, node: ast.expr) -> _Term:
        try:
            return self._read(node)
        except RecursionError:
            raise self.error("nested too deeply; write a simpler expression", node) from None

    def _read(self, node: ast.expr) -> _Term:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return self.condition(part).negated()
            case ast.BoolOp(op=sign, values=parts):
                join = conjunction if isinstance(sign, ast.And) else disjunction
                return join(*map(self.condition, parts))
            case ast.Compare(left=first, ops=signs, comparators=others):
                meanings = [_COMPARISONS.get(type(sign)) for sign in signs]
                pairs = pairwise(map(self.number, (first, *others)))
                comparisons = [
                    meaning(*pair) for meaning, pair in zip(meanings, pairs, strict=True) if meaning
                ]
                if len(comparisons) == len(signs):
                    return conjunction(*comparisons)
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return Expr.constant(value)
            case ast.Name() | ast.Attribute():
                return self._find(node)
            case ast.Subscript(value=ast.Name() as array):
                return self._find(array)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=part):
                return self.number(part) * (-1 if isinstance(sign, ast.USub) else 1)
            case ast.BinOp():
                return self._combine(node)
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[_, *_], keywords=[]):
                return functools.reduce(_EXTREMA[name], map(self.number, node.args))
            case ast.Call(func=ast.Name(id=name), args=[part], keywords=[]) if name in ID_FUNCTIONS:
                axis = self.number(part).constant_value
                if axis is None or not 0 <= axis < MAX_DIMENSIONS:
                    raise self.error(f"expected a dimension, 0 to {MAX_DIMENSIONS - 1}", part)
                return Expr.symbol(Symbol(ID_FUNCTIONS[name], axis=axis))
        raise self.error(f"{ast.unparse(node)} has no meaning here", node)

    def _combine(self, node: ast.BinOp) -> Expr:
        left, right = self.number(node.left), self.number(node.right)
        sign = type(node.op)
        if sign in (ast.Add, ast.Sub):
            return left + right if sign is ast.Add else left - right
        if sign is ast.Mult and (left.is_parameter or right.is_parameter):
            return left * right
        if sign not in (ast.Mult, ast.Div, ast.Mod):
            raise self.error(f"{ast.unparse(node)} has no meaning here", node)
        if sign is ast.Mult or not right.is_parameter:
            raise self.error(
                f"not affine: {ast.unparse(node)}; one factor, and what divides, must be a number "
                "or a scalar, which does not change from work-item to work-item",
                node,
            )
        if right.is_zero:
            raise self.error("division by zero", node.right)
        return trunc_div(left, right) if sign is ast.Div else trunc_mod(left, right)

    def _find(self, node: ast.expr) -> Expr:
        name = ast.unparse(node)
        if name in self._names:
            return self._names[name]
        if name in self._arrays:
            raise self.error(
                f"an address that depends on the content of {name!r} is not affine; model the "
                "kernel from its source, with `--device` to record the addresses",
                node,
            )
        close = difflib.get_close_matches(name, [*self._names, *ID_FUNCTIONS], n=1, cutoff=0.6)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise self.error(
            f"{name!r} is not known{hint}; there are x, y, z (global ids), local_x, group_x and so "
            "on, OpenCL's functions of ids and sizes, variables of loops, and scalars "
            f"({', '.join(self._scalars) or 'none'})",
            node,
        )

    def read_loop(self, part: ast.comprehension, site: int) -> LoopFacts:
        """Read ``for NAME in range(START, STOP, STEP)``, and let its name stand for its values."""
        variable = ast.unparse(part.target)
        is_taken = variable in self._names or variable in self._arrays
        if is_taken or not isinstance(part.target, ast.Name):
            raise self.error(
                f"{variable!r} has a meaning already; name the loop's otherwise", part.target
            )
        match part.iter:
            case ast.Call(func=ast.Name(id="range"), args=[_, *_] as bounds, keywords=[]) if (
                len(bounds) <= 3
            ):
                parts = [self.number(one) for one in bounds]
            case _:
                raise self.error("expected range(START, STOP, STEP)", part.iter)
        start, stop = (Expr.constant(0), parts[0]) if len(parts) == 1 else parts[:2]
        step = parts[2] if len(parts) == 3 else Expr.constant(1)
        if step.is_zero or not step.is_parameter:
            raise self.error(
                "expected a step that is a number other than 0 or a scalar", bounds[-1]
            )
        name = f"{site}:{variable}"
        value = self._names[variable] = start + step * Expr.symbol(Symbol(SymbolKind.LOOP, name))
        # C rounds upwards here; a step that is a scalar counts upwards.
        is_upwards = step.constant_value is None or step.constant_value > 0
        gap, width = (stop - start, step) if is_upwards else (start - stop, -step)
        return LoopFacts(
            name=name, line=0, is_exact=True,
            condition=less(value, stop) if is_upwards else less(stop, value),
            trip_count=maximum(floor_div(gap + width - 1, width), 0),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenArray:
    name: str
    element: ElementType
    extents: tuple[Expr, ...] = ()
    """Elements per dimension, the contiguous one first, over scalars; empty if not known."""
    space: MemorySpace = MemorySpace.GLOBAL
    shift_bytes: int = 0
    """Offset of its first byte from a 128-byte boundary."""

    def count_bytes(self, scalars: Mapping[str, int]) -> int | None:
        if not self.extents:
            return None
        values = bind_names(scalars)
        size = self.element.bytes
        for axis, extent in enumerate(self.extents):
            count = int(extent.evaluate(values))
            if count < 1:
                raise InputError(f"array {self.name!r}: extent {axis} is {count}; give at least 1")
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
    if not (name.isascii() and name.isidentifier()) or name in _RESERVED:
        raise InputError(f"array {name!r}: give it a name of letters and digits that is no keyword")
    words = type_text.split()
    space = next((one for one in _SPACES if words and words[0] == one.value), None)
    try:
        element = ElementType.parse(" ".join(words[1:] if space else words))
        sizes = []
        for text in extents:
            formula = _Text(text, scalars)
            sizes.append(extent := formula.number(formula.root))
            if not extent.is_parameter:
                raise formula.error("an extent is a number, or made of scalars", formula.root)
            if extent.constant_value is not None and extent.constant_value < 1:
                raise formula.error("an extent is at least 1", formula.root)
    except InputError as error:
        raise InputError(f"array {name!r}: {error}") from error
    return WrittenArray(
        name=name, element=element, extents=tuple(sizes), space=space or MemorySpace.GLOBAL
    )


def read_access(
    text: str,
    arrays: Mapping[str, WrittenArray],
    *,
    kind: AccessKind = AccessKind.LOAD,
    scalars: tuple[str, ...] = (),
    site: int = 0,
) -> MemoryAccess:
    """Read ``NAME[INDEX]... [for k in range(START, STOP, STEP)]... [if CONDITION]``."""
    formula = _Text(text, scalars, arrays)
    place, conditions, loops = formula.root, list[ast.expr](), list[LoopFacts]()
    if isinstance(place, ast.GeneratorExp):
        loops = [formula.read_loop(one, site) for one in place.generators]
        conditions = [condition for one in place.generators for condition in one.ifs]
        place = place.elt
    elif isinstance(place, ast.IfExp):
        conditions, place = [place.test], place.body
    guard = conjunction(*map(formula.condition, conditions)) if conditions else TRUE
    indices: list[ast.expr] = []
    while isinstance(place, ast.Subscript):
        inner = place.slice.elts if isinstance(place.slice, ast.Tuple) else [place.slice]
        indices, place = [*inner, *indices], place.value
    if not isinstance(place, ast.Name):
        raise formula.error("expected the name of an array, and [INDEX] behind it", place)
    array = arrays.get(place.id)
    if array is None:
        raise formula.error(
            f"array {place.id!r} is not declared; declared are: {', '.join(arrays) or 'none'}. "
            f"Declare it as {place.id}:TYPE:EXTENTS",
            place,
        )
    wanted = max(1, len(array.extents))
    if len(indices) != wanted:
        raise formula.error(
            f"{array.name!r} has {wanted} dimension{'s' * (wanted > 1)}, found {len(indices)} "
            "indices; give one per dimension, the contiguous one first",
            place,
        )
    element, stride = Expr.constant(0), Expr.constant(1)
    for index, extent in zip(indices, array.extents or (stride,), strict=True):
        element, stride = element + formula.number(index) * stride, stride * extent
    return MemoryAccess(
        site=site, block=site, line=0, text=text.strip(), kind=kind, space=array.space,
        buffer=array.name, bytes=array.element.bytes, offset_bytes=element * array.element.bytes,
        pattern=AddressPattern.QUASI_AFFINE, guard=guard, loops=tuple(loops),
    )  # fmt: skip


_F, _I, _K = NumberClass.FLOAT, NumberClass.INTEGER, OperationKind
OPERATIONS = {
    **{
        f"fp{bits}{ending}": Operation(kind=kind, number=_F, bits=bits)
        for bits in (16, 32, 64)
        for ending, kind in (("", _K.ADD), ("_fma", _K.FUSED))
    },
    "int32": Operation(kind=_K.ADD, number=_I, bits=32),
    "native_special": Operation(kind=_K.SPECIAL_NATIVE, number=_F, bits=32),
    "special": Operation(kind=_K.SPECIAL, number=_F, bits=32),
    "barrier": Operation(kind=_K.BARRIER),
}
"""Names of operations that can be counted by hand; a fused multiply-add is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenKernel:
    name: str
    arrays: tuple[WrittenArray, ...]
    accesses: tuple[MemoryAccess, ...]
    """Of one work-item, see `read_access`; their sites are 0, 1, 2 and so on."""
    scalars: Mapping[str, int] = field(default_factory=dict)
    operations: Mapping[str, float] = field(default_factory=dict)
    """How many of `OPERATIONS` a work-item executes."""

    def __post_init__(self) -> None:
        names = [one.name for one in self.arrays]
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            raise InputError(f"array {twice!r} is declared twice; keep one declaration")
        if not self.accesses:
            raise InputError("no access is given; write at least one, such as src[x-1][y]")
        for name, count in self.operations.items():
            if name not in OPERATIONS or count < 0:
                raise InputError(
                    f"operation {name}={count}: expected a count of at least 0 of one of "
                    f"{', '.join(OPERATIONS)}"
                )

    def facts(self) -> KernelFacts:
        """Give what analysis would have found, had there been a source."""
        written = {OPERATIONS[name]: count for name, count in self.operations.items() if count}
        parameters = []
        for array in self.arrays:
            kinds = {one.kind for one in self.accesses if one.buffer == array.name}
            parameters.append(ParameterFacts(
                name=array.name, type_name=str(array.element), space=array.space, is_pointer=True,
                is_const=AccessKind.STORE not in kinds, is_restrict=True, is_volatile=False,
                element_bytes=array.element.bytes,
                is_read=bool(kinds - {AccessKind.STORE}),
                is_written=bool(kinds - {AccessKind.LOAD}),
            ))  # fmt: skip
        entry = BlockFacts(
            id=0, function=self.name, line=0, counter=ONCE, parent=None,
            kind=BlockKind.ENTRY, operations=OperationCounts(operations=written, memory={}),
        )  # fmt: skip
        # One block per access, for each may have a guard and loops of its own.
        blocks = []
        for number, one in enumerate(self.accesses, start=1):
            # Atomics are operations, not memory, as where a source is read.
            atomic = Operation(kind=_K.ATOMIC, number=_I, bits=8 * one.bytes)
            moved = MemoryOperation(
                space=one.space, is_store=one.kind is AccessKind.STORE, bytes=one.bytes
            )
            is_atomic = one.kind is AccessKind.ATOMIC
            counts = OperationCounts(
                operations={atomic: 1.0} if is_atomic else {},
                memory={} if is_atomic else {moved: 1.0},
            )
            blocks.append(replace(entry, id=number, counter=one.site, parent=0,
                                  kind=BlockKind.ACCESS, operations=counts))  # fmt: skip
        return KernelFacts(
            kernel=self.name, line=0, parameters=tuple(parameters), blocks=(entry, *blocks),
            local_arrays=tuple(
                LocalArray(name=one.name, bytes=one.count_bytes(self.scalars) or 0)
                for one in self.arrays if one.space is MemorySpace.LOCAL
            ),
            reaches=tuple(CounterReach(guard=one.guard, loops=one.loops) for one in self.accesses),
            accesses=self.accesses, gaps=(),
            loops=tuple(dict.fromkeys(loop for one in self.accesses for loop in one.loops)),
        )  # fmt: skip
