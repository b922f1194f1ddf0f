"""What values of a kernel are: numbers by ids, loop iterations and arguments, and pointers."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, Final, TypeVar

from kernelcast.compiling.signatures import split_name
from kernelcast.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Condition,
    Expr,
    Symbol,
    SymbolKind,
    Unknown,
    conjunction,
    disjunction,
    equal,
    maximum,
    minimum,
    not_equal,
    select,
)
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.kernel_facts import ContentRead
from kernelcast.expressions.symbols import ID_FUNCTIONS
from kernelcast.features.ir.arithmetic import Arithmetic
from kernelcast.features.ir.control import LEFT, ControlFlow, Loop, Term
from kernelcast.features.ir.debug import DebugNotes, TypeNote
from kernelcast.features.ir.loops import REASON, Slot, describe_loop, solve_slots
from kernelcast.features.ir.module import (
    Function,
    Instruction,
    Module,
    Operand,
    is_vector,
    lane_of,
    number_space,
    read_operand,
    split_list,
    split_sequence,
)
from kernelcast.features.ir.values import (
    ONE,
    PLACES,
    ZERO,
    Choice,
    Lanes,
    Memory,
    Opaque,
    Pointer,
    Role,
    Value,
    as_condition,
    as_number,
    blur,
    bound_size,
    change_numbers,
    has_same_shape,
    is_stand_in,
    map_place,
    merge,
    parts_of,
    places_of,
    put_in,
    rebuild,
    sources_of,
    split,
    stand_in_for,
)
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.operations import MemorySpace

Found = TypeVar("Found")

_SPACES: Final = {
    0: MemorySpace.PRIVATE, 1: MemorySpace.GLOBAL, 2: MemorySpace.CONSTANT, 3: MemorySpace.LOCAL,
    4: MemorySpace.GENERIC,
}  # fmt: skip
_INITIAL: Final = "@__const."
"""Begins the names of what variables of functions are set to at first."""
_VARIABLE: Final = re.compile(r"@[\w.$]+")
_WHOLE: Final = re.compile(r"-?\d+$")
_FLOATS: Final = ("half", "bfloat", "float", "double", "fp128")
_FLOATING: Final = Opaque(reason="a floating-point number")
_IN_FLOAT: Final = "computed in floating point"
_OWN_ARRAY: Final = "an array of the work-item's own"
_LATER: Final = "set in a loop whose end is not known"
_BINARY: Final = frozenset(
    ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "sdiv", "udiv", "srem", "urem")
)
_LANE_WISE: Final = _BINARY | {"icmp", "sext", "zext", "trunc"}
_KEEPING: Final = frozenset(("freeze", "bitcast", "addrspacecast", "inttoptr", "ptrtoint",
                             "ptrtoaddr"))  # fmt: skip
_IDS: Final = {**ID_FUNCTIONS, "get_enqueued_local_size": SymbolKind.LOCAL_SIZE}
_SIZES: Final = (SymbolKind.GLOBAL_SIZE, SymbolKind.LOCAL_SIZE, SymbolKind.GROUP_COUNT)
_CONVERSION: Final = re.compile(r"convert_(u?)(char|short|int|long)\d*(_sat)?(_rt\w)?")
_CONVERTED_BITS: Final = {"char": 8, "short": 16, "int": 32, "long": 64}
_PRODUCTS: Final = frozenset(("mul24", "mad24", "mad", "fma"))


def name_called(instruction: Instruction) -> str:
    """Give the name of a called function as the source has it."""
    return split_name(instruction.detail)[0]


def mangled_types(instruction: Instruction) -> str:
    """Give how the types of a called function's parameters are written."""
    return split_name(instruction.detail)[1]


@lru_cache(maxsize=512)
def bits_of(type_name: str) -> int:
    """Give the bits of a whole number's type, or of a vector's lane; 0 for all else."""
    lane = lane_of(type_name)
    return int(lane[1:]) if lane[:1] == "i" and lane[1:].isdigit() else 0


def lanes_of(type_name: str) -> int:
    sequence = split_sequence(type_name) if is_vector(type_name) else None
    return sequence[0] if sequence else 1


def space_of(pointer: str) -> MemorySpace:
    """Give the address space that a pointer's type names."""
    return _SPACES.get(number_space(pointer), MemorySpace.PRIVATE)


def is_float(type_name: str) -> bool:
    """Tell whether a type is floating-point, or a vector of such."""
    return type_name in _FLOATS or (is_vector(type_name) and type_name.endswith(
        ("half>", "float>", "double>")))  # fmt: skip


def is_followed(type_name: str) -> bool:
    """Tell whether values of a type may be numbers or places."""
    return bool(bits_of(type_name)) or type_name.startswith("ptr")


class Evaluator:
    """Evaluates the values of one function."""

    def __init__(
        self, module: Module, function: Function, notes: DebugNotes, flow: ControlFlow,
        known_buffers: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.module, self.function, self.notes, self.flow = module, function, notes, flow
        self.known_buffers = known_buffers
        self.largest_unsigned: dict[str, int] = {}
        self.contents: dict[str, ContentRead] = {}
        self.fields: dict[str, ContentRead] = {}
        self.arithmetic = Arithmetic(self.largest_unsigned)
        self.instructions = {
            one.name: one for block in function.blocks.values() for one in block if one.name
        }
        self._layers: list[dict[object, object]] = [{}]
        self._active: set[tuple[int, str]] = set()
        signature = notes.reference(function.notes.get("dbg", -1), "type")
        types = notes.numbers(notes.reference(signature, "types"))
        self.parameter_notes = dict(enumerate(types, start=1))  # a kernel returns nothing
        self._parameters = {name: number for number, (_, name) in enumerate(function.parameters)}
        self._layers[0] |= {name: self._give_argument(at) for name, at in self._parameters.items()}
        headers = (label for label in flow.order if label in flow.loop_at)
        self._loop_names = {
            header: f"{number}:line {self.loop_line(header)}"
            for number, header in enumerate(headers, start=1)
        }

    # What is known already, in layers: while a loop is being solved, its values are preliminary.

    def _known(self, key: object) -> Any:  # noqa: ANN401 - the key says what it is
        found = self._layers[-1].get(key)
        for layer in self._layers[-2::-1] if found is None else ():
            found = layer.get(key)
            if found is not None:
                break
        return found

    def _remember(self, key: object, find: Callable[[], Found], meanwhile: object = None) -> Found:
        """Find what is not known yet; whoever asks for it `meanwhile` takes that for it."""
        found: Found | None = self._known(key)
        if found is None:
            self._layers[-1][key] = meanwhile
            self._layers[-1][key] = found = find()
        return found

    def loop_line(self, header: str) -> int:
        for latch in self.flow.loop_at[header].latches:
            lines = self.notes.loop_lines(self.flow.terminator(latch))
            if lines is not None:
                return lines[0]
        places = (self.notes.place(one.note) for one in self.flow.blocks[header])
        return next((one.line for one in places if one is not None and one.line), 0)

    def symbol(self, loop: Loop) -> Symbol:
        """Give the number of a loop's iteration."""
        return Symbol(SymbolKind.LOOP, self._loop_names[loop.header])

    def _give_argument(self, number: int) -> Value:
        kind, name = self.function.parameters[number]
        if not kind.startswith("ptr"):
            note = self.notes.type_of(self.parameter_notes.get(number + 1, -1))
            return self._name_number(name[1:], kind, note)
        if self.function.by_value[number]:
            return Pointer(Memory(name[1:], MemorySpace.PRIVATE, Role.ARGUMENT), ZERO)
        return Pointer(Memory(name[1:], space_of(kind)), ZERO)

    def _name_number(self, name: str, kind: str, note: TypeNote) -> Value:
        """Give the symbol of a number that the host passes, or those of a vector."""
        bits = bits_of(kind)
        if not bits:
            return _FLOATING
        lanes = lanes_of(kind)
        names = [name] if lanes == 1 else [f"{name}.s{lane:x}" for lane in range(lanes)]
        if note.is_unsigned:
            self.largest_unsigned |= dict.fromkeys(names, (1 << bits) - 1)
        numbers = [Expr.symbol(Symbol(SymbolKind.SCALAR, one)) for one in names]
        return numbers[0] if lanes == 1 else Lanes(tuple(numbers))

    # Values

    def value(self, name: str) -> Value:
        found: Value | None = self._known(name)
        if found is not None:
            return found
        depth = len(self._layers)
        if (depth, name) in self._active:  # it is made of itself, in what is no natural loop
            return Opaque(reason=REASON)
        stack = [name]
        expanded: set[str] = set()
        while stack:
            top = stack[-1]
            if self._known(top) is not None:
                stack.pop()
                continue
            instruction = self.instructions.get(top)
            if instruction is None:
                self._layers[-1][top] = Opaque(reason="a value that is not followed")
                continue
            loop = self.flow.loop_of.get(instruction.block)
            if instruction.opcode == "phi" and loop and loop.header == instruction.block:
                self._solve(loop)
                continue
            if top not in expanded:
                expanded.add(top)
                self._active.add((depth, top))
                missing = [
                    one for one in self._needed(instruction)
                    if one in self.instructions and self._known(one) is None and one not in expanded
                ]  # fmt: skip
                if missing:
                    stack.extend(missing)
                    continue
            self._layers[-1][top] = bound_size(self._evaluate(instruction))
            self._active.discard((depth, top))
            stack.pop()
        value: Value = self._known(name)
        return value

    def assume(self, name: str, value: Value) -> None:
        """Take a result for a value, before others that are made of it are asked for."""
        self._layers[0][name] = value

    def _needed(self, instruction: Instruction) -> Iterator[str]:
        for _, value in instruction.operands:
            if value.startswith("%"):
                yield value
        if instruction.opcode == "phi" and is_followed(instruction.type):
            for terms in self._edges(instruction):
                for term in terms or ():
                    for key in term:
                        if not key.startswith(LEFT):
                            for _, value in self.flow.terminator(key).operands[:1]:
                                if value.startswith("%"):
                                    yield value

    def operand(self, operand: Operand, block: str) -> Value:
        """Give the value of an operand where a block uses it."""
        kind, text = operand
        if not text.startswith("%"):
            return self._remember(operand, lambda: self._constant(kind, text))
        value = self.value(text)
        instruction = self.instructions.get(text)
        if instruction is None or instruction.block not in self.flow.loop_of:
            return value
        return self._leave(
            value, self.flow.loop_of[instruction.block], self.flow.loop_of.get(block)
        )

    def _leave(self, value: Value, inner: Loop | None, outer: Loop | None) -> Value:
        while inner is not None and not (outer is not None and outer.header in inner.blocks):
            symbol = self.symbol(inner)
            if any(symbol in one.symbols() for one in _numbers_in(value)):
                facts = self.loop_facts(inner)
                if facts.is_exact and facts.trip_count is not None:
                    last = facts.trip_count if inner.test else facts.trip_count - 1
                    value = change_numbers(value, partial(put_in, replacements={symbol: last}))
                else:
                    sources = sources_of(facts.condition) | self._sources_of_exits(inner.header)
                    # Which buffers pointers point into is known all the same.
                    inside = value.offset if isinstance(value, Pointer) else value
                    blurred = blur(inside, Opaque(sources), reason=_LATER)
                    value = Pointer(value.memory, blurred) if isinstance(value, Pointer) else (
                        blurred)  # fmt: skip
            inner = inner.parent
        return value

    def condition(self, operand: Operand, block: str) -> Condition:
        return as_condition(self.operand(operand, block))

    def _constant(self, kind: str, text: str) -> Value:
        if text in ("true", "false"):
            return TRUE if text == "true" else FALSE
        if _WHOLE.match(text) and bits_of(kind):
            return Expr.constant(int(text))
        if text in ("undef", "poison"):
            return Opaque(reason="not set", is_unset=True)
        if text in ("zeroinitializer", "null"):
            if is_vector(kind):
                return Lanes((ZERO,) * lanes_of(kind)) if bits_of(kind) else _FLOATING
            return ZERO if bits_of(kind) or kind.startswith("ptr") else _FLOATING
        if text.startswith("@"):
            return self._global(text)
        if text.startswith("splat ("):
            lane = read_operand(text[7:-1])
            return Lanes((self._constant(*lane),) * lanes_of(kind)) if bits_of(kind) else _FLOATING
        if text.startswith("<"):
            if not bits_of(kind):
                return _FLOATING
            lanes = [self._constant(*read_operand(one)) for one in split_list(text[1:-1])]
            return Lanes(tuple(lanes))
        if text.startswith("getelementptr"):
            inner = text[text.index("(") + 1 : -1]
            source, *operands = split_list(inner)
            return self._move([read_operand(one) for one in operands], source, "")
        if text.startswith(("addrspacecast (", "bitcast (", "ptrtoint (", "inttoptr (")):
            return self._constant(*read_operand(text[text.index("(") + 1 : text.rindex(" to ")]))
        if kind in _FLOATS or text[:2] == "0x":
            return _FLOATING
        return Opaque(reason="a constant that is not followed")

    def _global(self, text: str) -> Value:
        variable = self.module.globals.get(text)
        if variable is None:
            return Opaque(reason="a function")
        if not variable.value and variable.space == 2:
            return Pointer(Memory(text[1:], MemorySpace.CONSTANT, Role.ARGUMENT), ZERO)
        if text.startswith(_INITIAL):
            return Pointer(Memory(text, MemorySpace.PRIVATE, Role.INITIAL), ZERO)
        return Pointer(Memory(self.name_global(text), _SPACES.get(variable.space,
                       MemorySpace.GENERIC)), ZERO)  # fmt: skip

    def name_global(self, text: str) -> str:
        """Give the name of a variable of the program as the source has it."""
        variable = self.module.globals[text]
        note = self.notes.reference(variable.note, "var") if variable.note >= 0 else -1
        name = self.notes.fields(note).get("name") if note >= 0 else None
        if name:
            return name
        return "string literal" if text.startswith("@.str") else text[1:].rpartition(".")[2]

    @cached_property
    def _constants(self) -> dict[str, str]:
        """Constants of the program by their names in the source, of equal ones the first."""
        return {self.name_global(key): key for key, one in reversed(self.module.globals.items())
                if one.is_constant}  # fmt: skip

    def _evaluate(self, one: Instruction) -> Value:
        opcode, block = one.opcode, one.block
        if opcode == "getelementptr":
            return self._move(one.operands, one.detail, block)
        if opcode == "load":
            return self._read(self.operand(one.operands[0], block), one)
        if opcode == "alloca":
            return Pointer(Memory(one.name[1:], MemorySpace.PRIVATE, Role.OWN), ZERO)
        if opcode == "call":
            return self._call(one)
        values = [self.operand(each, block) for each in one.operands]
        if opcode == "phi":
            return self._join(one)
        if opcode in _LANE_WISE and any(isinstance(each, Lanes) for each in values):
            apply = self._compare if one.opcode == "icmp" else self._calculate_number
            return _by_lanes(one, values, apply)
        if opcode == "icmp":
            return self._compare(one, values)
        if opcode == "fcmp":
            return Unknown(tuple(sorted(sources_of(*values))))
        if not is_followed(one.type):
            return blur(*values, reason=_IN_FLOAT) if is_float(one.type) else blur(*values)
        return self._calculate_number(one, values)

    def _calculate_number(self, one: Instruction, values: list[Value]) -> Value:
        opcode = one.opcode
        if opcode in _BINARY:
            left, right = values
            if one.type == "i1":
                return _combine_truths(one.opcode, left, right)
            if isinstance(left, PLACES) or isinstance(right, PLACES):
                if opcode == "sub" and isinstance(left, Pointer) and isinstance(right, Pointer):
                    first, second = left.offset, right.offset
                    is_same = left.memory == right.memory
                    if is_same and isinstance(first, Expr) and isinstance(second, Expr):
                        return first - second
                return blur(left, right, reason="a calculation with pointers")
            first, second = as_number(left), as_number(right)
            if isinstance(first, Expr) and isinstance(second, Expr):
                bits = bits_of(one.type)
                found = self.arithmetic.combine(
                    one.opcode, first, second, bits, is_signed="nsw" in one.flags
                    or one.opcode in ("sdiv", "srem", "ashr"),
                )  # fmt: skip
                if found is not None:
                    return found
                return Opaque(reason="an operation that is not followed")
            return blur(left, right)
        if opcode in ("sext", "zext", "trunc"):
            return self._resize(values[0], one)
        if opcode in _KEEPING:
            before = one.operands[0][0]
            is_same = opcode != "bitcast" or before.startswith("ptr") or (
                bits_of(before) == bits_of(one.type) and lanes_of(before) == lanes_of(one.type)
            )  # fmt: skip
            return values[0] if is_same else blur(values[0], reason="reinterpreted")
        if opcode == "select":
            chosen, then, otherwise = values
            if isinstance(chosen, Lanes):
                return blur(*values)
            return merge(as_condition(chosen), then, otherwise)
        if opcode in ("extractelement", "insertelement", "shufflevector"):
            return _move_lanes(opcode, values, one)
        if opcode in ("fptosi", "fptoui"):
            return blur(*values, reason=_IN_FLOAT)
        return blur(*values, reason="an operation that is not followed")

    def _move(self, operands: Sequence[Operand], kind: str, block: str) -> Value:
        """Give the address that an index leads to."""
        distance: Expr | Opaque = ZERO
        for operand, size in self.module.list_steps(kind, operands[1:]):
            number = as_number(self.operand(operand, block)) if operand else ONE
            distance = _add(distance, number * size if isinstance(number, Expr) else number)
        return move_place(self.operand(operands[0], block), distance)

    def _compare(self, one: Instruction, values: list[Value]) -> Value:
        left, right = values
        if isinstance(left, PLACES) or isinstance(right, PLACES):
            if isinstance(left, Pointer) and isinstance(right, Pointer) and (
                left.memory == right.memory
            ):  # fmt: skip
                left, right = left.offset, right.offset
            else:
                return Unknown(())
        if one.type == "i1" and isinstance(left, Condition) and right in (TRUE, FALSE):
            return left if (one.detail == "eq") == (right == TRUE) else left.negated()
        first, second = as_number(left), as_number(right)
        if isinstance(first, Opaque) or isinstance(second, Opaque):
            return Unknown(tuple(sorted(sources_of(left, right))))
        if isinstance(left, Condition) and second == ZERO and one.detail in ("eq", "ne"):
            return left if one.detail == "ne" else left.negated()
        return self.arithmetic.compare(one.detail, first, second, bits_of(one.type))

    def _resize(self, value: Value, one: Instruction) -> Value:
        """Widen a number, or cut it: what is cut is taken to fit, but for truth values."""
        before, is_signed = bits_of(one.operands[0][0]), one.opcode == "sext"
        if one.opcode == "trunc":
            if one.type != "i1" or isinstance(value, Condition):
                return value
            number = as_number(value)
            if isinstance(number, Opaque):
                return as_condition(value)
            lowest = self.arithmetic.combine("urem", number, Expr.constant(2), 64, is_signed=False)
            return not_equal(lowest or number, 0)
        if before == 1:
            condition = as_condition(value)
            if not is_signed:
                return condition
            return select(condition, -1, 0) if condition.is_exact else blur(condition)
        number = as_number(value)
        if isinstance(number, Opaque):
            return value
        return self.arithmetic.widen(number, before, is_signed=is_signed)

    # Conditions and joins

    def _edges(self, phi: Instruction) -> list[list[Term] | None]:
        flow = self.flow
        found: list[list[Term] | None] = []
        for label in phi.labels:
            if label not in flow.place:
                found.append(None)
                continue
            edge = flow.successors[label].index(phi.block)
            found.append(flow.terms_into(label, edge, phi.block))
        return found

    def _join(self, phi: Instruction) -> Value:
        """Give what a value is where several ways meet."""
        flow, edges = self.flow, self._edges(phi)
        outer = flow.loop_of.get(phi.block)
        sides: list[tuple[list[Term], Value]] = []
        for (operand, label), terms in zip(
            zip(phi.operands, phi.labels, strict=True), edges, strict=True
        ):
            if label not in flow.place:
                continue
            value = self.operand(operand, label)
            value = self._leave(value, flow.loop_of[label], outer)
            if terms is None:
                terms = [{LEFT: frozenset((0,))}]
            sides.append((terms, value))
        if all(value == sides[0][1] for _, value in sides):
            return sides[0][1]
        if not is_followed(phi.type):
            return blur(*(value for _, value in sides), reason=_IN_FLOAT)
        every = [term for terms, _ in sides for term in terms]
        common = {
            key: edge for key, edge in every[0].items()
            if all(term.get(key) == edge for term in every)
        }  # fmt: skip
        conditions = [self._meet(terms, common) for terms, _ in sides]
        if phi.type == "i1":
            return disjunction(*(
                conjunction(condition, as_condition(value))
                for condition, (_, value) in zip(conditions, sides, strict=True)
            ))  # fmt: skip
        # One that is met wherever no other is needs no condition of its own: the longest.
        order = sorted(range(len(sides)), key=lambda one: (-len(str(conditions[one])), -one))
        reached = [one for one in order if conditions[one] != FALSE]
        if not reached:
            return blur(*(value for _, value in sides))
        result = sides[reached[0]][1]
        for one in reached[1:]:
            result = merge(conditions[one], sides[one][1], result)
        return result

    def _meet(self, terms: list[Term], common: Term) -> Condition:
        """Give the condition that one of some terms is met, but for what all have in common."""
        return disjunction(*(
            conjunction(*(
                self.choice(key, edges) for key, edges in term.items() if key not in common
            ))
            for term in terms
        ))  # fmt: skip

    def choice(self, key: str, edges: frozenset[int]) -> Condition:
        """Give the condition that a block is left by some of its edges."""
        if key == LEFT:
            return UNKNOWN
        if key.startswith(LEFT):
            return Unknown(tuple(sorted(self._sources_of_exits(key[len(LEFT) :]))))
        end = self.flow.terminator(key)
        if end.opcode == "br":
            condition = self.condition(end.operands[0], key)
            return condition if 0 in edges else condition.negated()
        if end.opcode != "switch":
            return UNKNOWN
        number = as_number(self.operand(end.operands[0], key))
        if isinstance(number, Opaque):
            return Unknown(tuple(sorted(number.sources)))
        cases = [Expr.constant(int(value)) for _, value in end.operands[1:]]
        if 0 not in edges:
            return disjunction(*(equal(number, cases[edge - 1]) for edge in sorted(edges)))
        others = [one for edge, one in enumerate(cases, start=1) if edge not in edges]
        return conjunction(*(not_equal(number, one) for one in others))

    def _sources_of_exits(self, header: str) -> frozenset[str]:
        """Give the buffers on which it depends how a loop is left."""

        def find() -> frozenset[str]:
            asked = {label for label, _ in self.flow.loop_at[header].exits}
            for label in [*asked]:
                asked.update(key for term in self.flow.terms[label] or () for key in term
                             if not key.startswith(LEFT))  # fmt: skip
            return sources_of(*(
                self.value(value) for label in asked
                for _, value in self.flow.terminator(label).operands[:1] if value.startswith("%")
            ))  # fmt: skip

        return self._remember(("sources", header), find, frozenset())

    def guard(self, block: str) -> Condition:
        """Give the condition on which a block is executed, loops aside."""
        loop, own = self.flow.loop_of[block], self.flow.terms[block]
        return self._remember(("guard", block), lambda: as_condition(bound_size(conjunction(
            TRUE if loop is None else self._guard_of_loop(loop),
            UNKNOWN if own is None else self._meet(own, {}),
        ))))  # fmt: skip

    def _guard_of_loop(self, loop: Loop) -> Condition:
        return self._remember(("enters", loop.header), lambda: conjunction(
            TRUE if loop.parent is None else self._guard_of_loop(loop.parent),
            UNKNOWN if (terms := self.flow.terms_of_header(loop)) is None
            else self._meet(terms, {}),
        ))  # fmt: skip

    # Loops

    def loop_facts(self, loop: Loop) -> LoopFacts:
        # A loop's end may depend on values of it that are used outside.
        return self._remember(("loop", loop.header), lambda: self._describe(loop), LoopFacts(
            name=self.symbol(loop).name, line=0, condition=UNKNOWN, trip_count=None,
            is_exact=False,
        ))  # fmt: skip

    def _describe(self, loop: Loop) -> LoopFacts:
        flow, symbol = self.flow, self.symbol(loop)
        stays: list[Condition] = []
        test, leaves = None, flow.is_irreducible
        for label, edge in loop.exits:
            if label == loop.test:
                test = self.choice(label, frozenset((edge,))).negated()
            elif flow.loop_of[label] is loop and all(
                flow.dominates(label, one) for one in loop.latches
            ):
                stays.append(self.choice(label, frozenset((edge,))).negated())
            else:
                leaves = True
        return describe_loop(
            symbol, self.loop_line(loop.header), test, stays, leaves=leaves,
            limits=self.largest_unsigned,
        )  # fmt: skip

    def _solve(self, loop: Loop) -> None:
        """Find out what a loop's values are at the start of each iteration."""
        phis = [one for one in self.flow.blocks[loop.header]
                if one.opcode == "phi" and self._known(one.name) is None]  # fmt: skip
        symbol = self.symbol(loop)
        starts: dict[str, Value] = {}
        for phi in phis:
            labels = [
                one for one in phi.labels if one not in loop.blocks and one in self.flow.place
            ]
            starts[phi.name] = self._merge_sides(phi, labels, loop.parent)
        slots: dict[str, list[Slot]] = {}
        layer: dict[object, object] = {}
        forgotten: set[str] = set()
        for phi in phis:
            start = starts[phi.name]
            if not is_followed(phi.type):
                layer[phi.name] = Opaque(sources_of(start), _IN_FLOAT)
                continue
            if isinstance(start, Choice):
                layer[phi.name] = blur(start, reason=REASON)
                forgotten.add(phi.name)
                continue
            slots[phi.name] = [
                Slot(leaf, stand_in_for(phi.name, at)) for at, leaf in enumerate(split(start))
            ]
            layer[phi.name] = rebuild(start, (Expr.symbol(each.before) for each in slots[phi.name]))
        self._layers.append(layer)
        ends = {
            phi.name: self._merge_sides(
                phi, [one for one in phi.labels if one in loop.blocks], loop
            )
            for phi in phis
        }
        self._layers.pop()
        known = self._layers[-1]
        for name in starts.keys() - slots.keys():
            found = sources_of(starts[name], ends[name])
            reason = "" if found else REASON
            known[name] = Opaque(found, reason if name in forgotten else _IN_FLOAT)
        shaped = []
        for name, each in slots.items():
            start, end = starts[name], ends[name]
            unset = isinstance(start, Opaque) and start.is_unset
            if not (unset or has_same_shape(start, end)):
                # What is left are the buffers that it may point into.
                found = sources_of(start, end)
                known[name] = blurred = Opaque(found, "" if found else REASON)
                if isinstance(start, Pointer) and isinstance(end, Pointer):
                    known[name] = Choice(
                        UNKNOWN, Pointer(start.memory, blurred), Pointer(end.memory, blurred)
                    )
                for slot in each:
                    slot.after = Opaque(sources_of(end), REASON)
            elif has_same_shape(start, end):
                shaped.append(name)
                for slot, leaf in zip(each, split(end), strict=True):
                    slot.after = leaf
            else:
                known[name] = Opaque(sources_of(end), REASON)
        solve_slots([slot for each in slots.values() for slot in each], symbol)
        for name in shaped:
            leaves = (slot.at_start or Opaque(reason=REASON) for slot in slots[name])
            known[name] = rebuild(starts[name], leaves)

    def _merge_sides(self, phi: Instruction, labels: list[str], loop: Loop | None) -> Value:
        """Give what a value is in a loop by all ways from some blocks, if that is one."""
        sides = [
            self._leave(self.operand(phi.operands[phi.labels.index(label)], label),
                        self.flow.loop_of[label], loop)
            for label in labels
        ]  # fmt: skip
        if all(one == sides[0] for one in sides):
            return sides[0]
        return blur(*sides, reason=REASON)

    # Memory

    def _read(self, place: Value, one: Instruction) -> Value:
        if isinstance(place, Choice):
            return blur(*(self._read(each, one) for _, each in places_of(place)))
        if not isinstance(place, Pointer):
            return blur(place)
        memory, offset = place.memory, place.offset
        constant = offset.constant_value if isinstance(offset, Expr) else None
        if memory.role is Role.ARGUMENT and memory.space is MemorySpace.CONSTANT:
            # A name that the source does not define.
            self.largest_unsigned[memory.name] = (1 << 31) - 1
            return Expr.symbol(Symbol(SymbolKind.SCALAR, memory.name))
        if memory.role is Role.ARGUMENT:
            if constant is None:
                return Opaque(reason=_OWN_ARRAY)
            number = self._parameters[f"%{memory.name}"] + 1
            size = 8 * self.module.size_of(one.type)
            part = self.notes.name_part(self.parameter_notes.get(number, -1), constant, size)
            if part is None:
                return Opaque(reason="a part of a structure")
            named = self._name_number(f"{memory.name}{part[0]}", one.type, part[1])
            element_bytes = bits_of(one.type) // 8
            for lane, each in enumerate(named.lanes if isinstance(named, Lanes) else (named,)):
                for symbol in each.symbols() if isinstance(each, Expr) else ():
                    self.fields[symbol.name] = ContentRead(
                        name=symbol.name, buffer=memory.name, element_bytes=element_bytes,
                        offset_bytes=Expr.constant(constant + lane * element_bytes),
                        is_signed=not part[1].is_unsigned,
                    )  # fmt: skip
            return named
        if memory.role is Role.INITIAL:
            found = None if constant is None else self._initial(memory.name, constant, one.type)
            return found or Opaque(reason="an initial value that is not followed")
        if memory.space is MemorySpace.PRIVATE:
            return blur(Opaque(frozenset(self._held[f"%{memory.name}"])), offset,
                        reason=_OWN_ARRAY)  # fmt: skip
        if memory.space is MemorySpace.CONSTANT and constant is not None and (
            variable := self._constants.get(memory.name)
        ):  # fmt: skip
            found = self._initial(variable, constant, one.type)
            if found is not None:
                return found
        if memory.name in self.known_buffers and bits_of(one.type) and not is_vector(one.type):
            content = self._content(place, one)
            if content is not None:
                return content
        return Opaque(frozenset({memory.name}))

    def _content(self, place: Pointer, one: Instruction) -> Expr | None:
        """Give the symbol of a whole number in a buffer whose content is known."""
        offset = place.offset
        if not isinstance(offset, Expr) or any(
            each.kind is SymbolKind.LOOP or is_stand_in(each) for each in offset.symbols()
        ):
            return None
        number = next((n for n, (_, name) in enumerate(self.function.parameters, start=1)
                       if name[1:] == place.memory.name), 0)  # fmt: skip
        pointer = self.notes.type_of(self.parameter_notes.get(number, -1))
        note = TypeNote() if pointer.target is None else self.notes.type_of(pointer.target)
        bits = bits_of(one.type)
        if note.bits != bits or not (note.is_signed or note.is_unsigned):
            note = TypeNote(name=one.type, is_signed=True)
        name = f"{note.name} of {place.memory.name} at {offset}"
        self.contents.setdefault(name, ContentRead(
            name=name, buffer=place.memory.name, offset_bytes=offset,
            element_bytes=bits // 8, is_signed=note.is_signed,
        ))  # fmt: skip
        if note.is_unsigned:
            self.largest_unsigned[name] = (1 << bits) - 1
        return Expr.symbol(Symbol(SymbolKind.CONTENT, name))

    def _initial(self, name: str, offset: int, wanted: str) -> Value | None:
        """Give a whole number, or a vector of such, of a constant's initial value."""
        variable, bits = self.module.globals[name], bits_of(wanted)
        try:
            content = self._remember(
                ("initial", name), lambda: self.module.encode(variable.type, variable.value)
            )
        except ValueError:
            return None
        if bits < 8 or not 0 <= offset <= len(content) - self.module.size_of(wanted):
            return None
        lanes = [
            Expr.constant(int.from_bytes(content[at : at + bits // 8], "little", signed=True))
            for at in range(offset, offset + lanes_of(wanted) * bits // 8, bits // 8)
        ]
        return Lanes(tuple(lanes)) if is_vector(wanted) else lanes[0]

    @cached_property
    def _held(self) -> dict[str, set[str]]:
        """Buffers from which results come, and what arrays of the work-item's own hold anywhere."""
        takers: dict[str, list[str]] = defaultdict(list)
        waiting: list[tuple[str, str]] = []
        by_value = dict(zip(self._parameters, self.function.by_value, strict=True))
        for one in self.flow.list_instructions():
            pointers = [value for kind, value in one.operands if kind.startswith("ptr")]
            name = name_called(one) if one.opcode == "call" else ""
            is_copy = name.startswith("llvm.mem")
            is_read = one.opcode == "load" or name.startswith(("vload", "atom"))
            written = [value for _, value in one.operands[1:]] if one.opcode == "store" else []
            if name.startswith("llvm.lifetime"):
                continue
            if one.opcode == "call":
                written = pointers[: 1 if is_copy else None]
            values = [] if is_read else [value for _, value in one.operands if value not in written]
            if one.opcode == "phi":
                for key in self.flow.find_branches(one):
                    values += [value for _, value in self.flow.terminator(key).operands[:1]]
            taken = set[str]()
            for base in {base for each in pointers if is_read for base in self.bases(each)}:
                if base in self.module.globals:
                    taken |= set() if base.startswith(_INITIAL) else {self.name_global(base)}
                elif base not in by_value:
                    values += [base, *pointers]
                elif not by_value[base]:
                    taken.add(base[1:])
            for target in (one.name, *(root for each in written for root in self.roots(each))):
                waiting += [(target, source) for source in taken]
                for value in values:
                    takers[value].append(target)
        found: dict[str, set[str]] = defaultdict(set)
        while waiting:
            name, source = waiting.pop()
            if source not in found[name]:
                found[name].add(source)
                waiting += [(taker, source) for taker in takers.get(name, ())]
        return found

    def bases(self, value: str) -> set[str]:
        """Give what an address is made from: variables, parameters, arrays, loaded addresses."""
        found, waiting, seen = set[str](), [value], set[str]()
        while waiting:
            name = waiting.pop()
            one = self.instructions.get(name)
            if name in seen:
                continue
            seen.add(name)
            if one is not None and one.opcode in (
                "getelementptr", "addrspacecast", "bitcast", "freeze"
            ):  # fmt: skip
                waiting.append(one.operands[0][1])
            elif one is not None and one.opcode in ("phi", "select"):
                waiting.extend(each for _, each in one.operands)
            else:
                found.update(_VARIABLE.findall(name) if "@" in name else (name,))
        return found

    def roots(self, value: str) -> set[str]:
        """Give the arrays of the work-item's own that an address may lie in."""
        return {
            base for base in self.bases(value)
            if base in self.instructions and self.instructions[base].opcode == "alloca"
        }  # fmt: skip

    # Built-in functions

    def _call(self, one: Instruction) -> Value:
        name = name_called(one)
        if name in _IDS:
            kind = _IDS[name]
            asked = self.operand(one.operands[0], one.block)
            axis = asked.constant_value if isinstance(asked, Expr) else None
            if axis is None:
                return Opaque(reason=f"{name} of a dimension that is not constant")
            if not 0 <= axis < MAX_DIMENSIONS:
                return Expr.constant(int(kind in _SIZES))
            return Expr.symbol(Symbol(kind, axis=axis))
        if name in ("get_local_linear_id", "get_global_linear_id"):
            is_local = name == "get_local_linear_id"
            id_kind = SymbolKind.LOCAL_ID if is_local else SymbolKind.GLOBAL_ID
            size_kind = SymbolKind.LOCAL_SIZE if is_local else SymbolKind.GLOBAL_SIZE
            total = Expr.constant(0)
            for axis in reversed(range(MAX_DIMENSIONS)):
                own = Expr.symbol(Symbol(id_kind, axis=axis))
                if not is_local:
                    own = own - Symbol(SymbolKind.GLOBAL_OFFSET, axis=axis)
                total = total * Symbol(size_kind, axis=axis) + own
            return total
        values = [self.operand(each, one.block) for each in one.operands if each[0] != "metadata"]
        if name.startswith(("vload", "atom")):
            return blur(*(
                Opaque(frozenset((each.memory.name,))) for value in values
                for _, each in places_of(value) if isinstance(each, Pointer)
            ), reason="a value in memory")  # fmt: skip
        if not bits_of(one.type):
            return blur(*values, reason="a floating-point number")
        return self._calculate(name, values, one)

    def _calculate(self, name: str, values: list[Value], one: Instruction) -> Value:
        """Evaluate a built-in function of whole numbers."""
        if any(isinstance(each, Lanes) for each in values):
            if name == "select":  # by the sign of each lane
                return blur(*values)
            return _by_lanes(one, values, lambda inner, own: self._calculate(name, own, inner))
        converted = _CONVERSION.fullmatch(name)
        if converted and values:
            return self._convert(values[0], converted, one)
        if name == "select" and len(values) == 3:
            return merge(as_condition(values[2]), values[1], values[0])
        numbers = [as_number(each) for each in values]
        known = [each for each in numbers if isinstance(each, Expr)]
        if len(known) < len(numbers):
            return blur(*values)
        is_signed = not mangled_types(one).lstrip("Dv0123456789_").startswith(("j", "m", "t", "h"))
        name = {"llvm.smin": "min", "llvm.smax": "max"}.get(name.rpartition(".")[0], name)
        if name in ("min", "max") and len(known) == 2:
            return self._extremum(name, known[0], known[1], bits_of(one.type), is_signed=is_signed)
        if name == "clamp" and len(known) == 3:
            bits = bits_of(one.type)
            floor = self._extremum("max", known[0], known[1], bits, is_signed=is_signed)
            return self._extremum("min", floor, known[2], bits, is_signed=is_signed)
        if name in ("abs", "llvm.abs.i32", "llvm.abs.i64") and known:
            number = known[0]
            return number if self.arithmetic.is_non_negative(number) else maximum(number, -number)
        if name in _PRODUCTS and len(known) in (2, 3):
            product = self.arithmetic.combine("mul", known[0], known[1], 32, is_signed=is_signed)
            if product is not None and len(known) == 3:
                product = self.arithmetic.combine("add", product, known[2], 32, is_signed=is_signed)
            if product is not None:
                return product
        return Opaque(reason=f"{name}() is not followed")

    def _convert(self, value: Value, match: re.Match[str], one: Instruction) -> Value:
        number = as_number(value)
        if is_float(one.operands[0][0]):
            return blur(value, reason=_IN_FLOAT)
        if isinstance(number, Opaque):
            return value
        bits, is_signed = _CONVERTED_BITS[match[2]], not match[1]
        if not match[3]:
            return self.arithmetic.widen(number, bits, is_signed=is_signed)
        low = -(1 << (bits - 1)) if is_signed else 0
        return number if bits >= 32 else minimum(maximum(number, low), low + (1 << bits) - 1)

    def _extremum(self, name: str, one: Expr, two: Expr, bits: int, *, is_signed: bool) -> Expr:
        is_plain = is_signed or all(
            each.is_parameter or self.arithmetic.is_non_negative(each) for each in (one, two)
        )
        if is_plain:
            return minimum(one, two) if name == "min" else maximum(one, two)
        is_less = self.arithmetic.compare("ult", one, two, bits)
        return select(is_less, one, two) if name == "min" else select(is_less, two, one)


def move_place(place: Value, distance: Expr | Opaque) -> Value:
    """Move a pointer by so many bytes."""
    if isinstance(place, PLACES):
        return map_place(place, lambda one: Pointer(one.memory, _add(one.offset, distance)))
    return blur(place, distance, reason="a pointer that is not followed")


def _add(one: Expr | Opaque, two: Expr | Opaque) -> Expr | Opaque:
    return one + two if isinstance(one, Expr) and isinstance(two, Expr) else blur(one, two)


def _numbers_in(value: Value) -> Iterator[Expr | Condition]:
    if isinstance(value, Expr | Condition):
        yield value
    for part in parts_of(value):
        yield from _numbers_in(part)


def _by_lanes(
    one: Instruction, values: list[Value], apply: Callable[[Instruction, list[Value]], Value]
) -> Value:
    """Do to each lane what an instruction or a built-in function does to vectors."""
    counts = {len(each.lanes) for each in values if isinstance(each, Lanes)}
    if len(counts) > 1 or not is_vector(one.type):
        return blur(*values)
    inner = Instruction(
        one.opcode, "", lane_of(one.type),
        tuple((lane_of(kind), value) for kind, value in one.operands), detail=one.detail,
        flags=one.flags, block=one.block,
    )  # fmt: skip
    return Lanes(tuple(
        apply(inner, [each.lanes[at] if isinstance(each, Lanes) else each for each in values])
        for at in range(counts.pop())
    ))  # fmt: skip


def _combine_truths(opcode: str, left: Value, right: Value) -> Condition:
    one, two = as_condition(left), as_condition(right)
    if opcode == "and":
        return conjunction(one, two)
    if opcode == "or":
        return disjunction(one, two)
    if opcode == "xor" and two == TRUE:
        return one.negated()
    if opcode == "xor":
        return disjunction(conjunction(one, two.negated()), conjunction(one.negated(), two))
    return Unknown(tuple(sorted(sources_of(left, right))))


def _move_lanes(opcode: str, values: list[Value], one: Instruction) -> Value:
    """Take, set or rearrange lanes of a vector."""
    if opcode != "shufflevector":
        vector, index = values[0], values[-1]
        place = index.constant_value if isinstance(index, Expr) else None
        if opcode == "insertelement" and isinstance(vector, Opaque):
            vector = Lanes((vector,) * lanes_of(one.type))
        if place is None or not isinstance(vector, Lanes) or not 0 <= place < len(vector.lanes):
            return blur(*values, reason="lanes of a vector that is not followed")
        if opcode == "extractelement":
            return vector.lanes[place]
        return Lanes((*vector.lanes[:place], values[1], *vector.lanes[place + 1 :]))
    first, second, mask = values
    count = lanes_of(one.operands[0][0])
    sides: list[Value] = []
    for side in (first, second):
        sides.extend(side.lanes if isinstance(side, Lanes) else (side,) * count)
    if not isinstance(mask, Lanes):
        return blur(first, second)
    chosen = []
    for lane in mask.lanes:
        at = lane.constant_value if isinstance(lane, Expr) else None
        chosen.append(Opaque(is_unset=True) if at is None or at >= len(sides) else sides[at])
    return Lanes(tuple(chosen))
