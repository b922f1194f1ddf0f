"""What values of a kernel are: numbers by ids, loop iterations and arguments, and pointers."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, Final, TypeVar

from kernelcast.compiling.ir import (
    Global,
    Instruction,
    Module,
    Operand,
    is_vector,
    number_space,
    read_operand,
    split_list,
)
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
    floor_mod,
    less,
    maximum,
    minimum,
    not_equal,
    select,
)
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.kernel_facts import ContentRead
from kernelcast.expressions.symbols import ID_FUNCTIONS
from kernelcast.features.ir.control import INITIAL, LEFT, Code, Loop, Term
from kernelcast.features.ir.debug import TypeNote
from kernelcast.features.ir.operations import (
    bits_of,
    is_float,
    lanes_of,
    mangled_types,
    name_called,
)
from kernelcast.features.ir.values import (
    ONE,
    PLACES,
    REASON,
    ZERO,
    Arithmetic,
    Choice,
    Lanes,
    Leaf,
    Memory,
    Opaque,
    Part,
    Pointer,
    Value,
    as_condition,
    as_number,
    blur,
    bound_size,
    by_lanes,
    count_iterations,
    ends_for_good,
    exchange,
    is_non_negative,
    merge,
    parts_of,
    places_of,
    put_in,
    refill,
    solve_numbers,
    sources_of,
)
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.operations import MemorySpace

Found = TypeVar("Found")

_SPACES: Final = {
    0: MemorySpace.PRIVATE, 1: MemorySpace.GLOBAL, 2: MemorySpace.CONSTANT, 3: MemorySpace.LOCAL,
    4: MemorySpace.GENERIC,
}  # fmt: skip
_FLOATING: Final = Opaque(reason="a floating-point number")
_UNSET: Final = Opaque(reason="not set", is_unset=True)
_LITERALS: Final[dict[str, Value]] = {
    "true": TRUE,
    "false": FALSE,
    "undef": _UNSET,
    "poison": _UNSET,
    "null": ZERO,
}
_IN_FLOAT: Final = "computed in floating point"
_LATER: Final = "set in a loop whose end is not known"
_OWN_ARRAY: Final = "an array of the work-item's own"
_LANE_WISE: Final = frozenset((
    "add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "sdiv", "udiv", "srem", "urem",
    "icmp", "sext", "zext", "trunc",
))  # fmt: skip
_BEFORE: Final = "before "
"""Begins the names of symbols that stand for numbers as they were before an iteration."""
_MOST_PLACES: Final = 32
"""Elements of a table of constants that an index may choose among."""
_CASTS: Final = ("addrspacecast", "bitcast", "ptrtoint", "inttoptr", "ptrtoaddr", "freeze")
_IDS: Final = {**ID_FUNCTIONS, "get_enqueued_local_size": SymbolKind.LOCAL_SIZE}
_SIZES: Final = (SymbolKind.GLOBAL_SIZE, SymbolKind.LOCAL_SIZE, SymbolKind.GROUP_COUNT)
_LINEAR_IDS: Final = {
    "get_local_linear_id": (SymbolKind.LOCAL_SIZE, SymbolKind.LOCAL_ID),
    "get_global_linear_id": (
        SymbolKind.GLOBAL_SIZE, SymbolKind.GLOBAL_ID, SymbolKind.GLOBAL_OFFSET),
}  # fmt: skip
_BUILTINS: Final = {
    "min": ("min",), "max": ("max",), "clamp": ("max", "min"), "mul24": ("mul",),
    "mad24": ("mul", "add"),
}  # fmt: skip
"""Operators that functions of numbers apply to their first argument and each other."""
_CONVERSION: Final = re.compile(r"convert_(u?)(char|short|int|long)\d*(_sat)?(_rt\w)?")
_CONVERTED_BITS: Final = {"char": 8, "short": 16, "int": 32, "long": 64}


def space_of(pointer: str) -> MemorySpace:
    return _SPACES.get(number_space(pointer), MemorySpace.PRIVATE)


def is_followed(type_name: str) -> bool:
    """Tell whether values of a type may be numbers or places."""
    return bool(bits_of(type_name)) or type_name.startswith("ptr")


class Evaluator(Code):
    def __init__(
        self, module: Module, kernel_name: str, file_name: str,
        known_buffers: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        super().__init__(module, kernel_name, file_name)
        function, flow = self.function, self.flow
        self.known_buffers = known_buffers
        self.largest_unsigned: dict[str, int] = {}
        self.contents: dict[str, ContentRead] = {}
        self.fields: dict[str, ContentRead] = {}
        self.arithmetic = Arithmetic(self.largest_unsigned)
        self._places = {name: at for at, name in enumerate(self.instructions)}
        # While a loop is being solved, what was found since is preliminary.
        self._known: dict[object, Any] = {
            name: Pointer(
                Memory(name[1:], MemorySpace.PRIVATE if copied else space_of(kind),
                       is_given=bool(copied)),
                ZERO,
            ) if kind.startswith("ptr") else self._name_number(name[1:], kind, self.type_of(name))
            for (kind, name), copied in zip(function.parameters, function.by_value, strict=True)
        }  # fmt: skip
        headers = (label for label in flow.order if label in flow.loop_at)
        self._loop_names = {
            header: f"{number}:line {self.loop_line(header)}"
            for number, header in enumerate(headers, start=1)
        }

    def _remember(self, key: object, find: Callable[[], Found], meanwhile: object = None) -> Found:
        """Find what is not known yet; whoever asks for it `meanwhile` takes that for it."""
        found: Found | None = self._known.get(key)
        if found is None:
            self._known[key] = meanwhile
            self._known[key] = found = find()
        return found

    def loop_line(self, header: str) -> int:
        for latch in self.flow.loop_at[header].latches:
            lines = self.notes.loop_lines(self.flow.terminator(latch))
            if lines is not None:
                return lines[0]
        places = (self.notes.place(one.note) for one in self.flow.blocks[header])
        return next((one.line for one in places if one is not None and one.line), 0)

    def symbol(self, loop: Loop) -> Symbol:
        return Symbol(SymbolKind.LOOP, self._loop_names[loop.header])

    def _name_number(self, name: str, kind: str, note: TypeNote) -> Value:
        """Give the symbol of a number that the host passes, or those of a vector."""
        bits, lanes = bits_of(kind), lanes_of(kind)
        if not bits:
            return _FLOATING
        names = [name] if lanes == 1 else [f"{name}.s{lane:x}" for lane in range(lanes)]
        if note.is_unsigned:
            self.largest_unsigned |= dict.fromkeys(names, (1 << bits) - 1)
        numbers = [Expr.symbol(Symbol(SymbolKind.SCALAR, one)) for one in names]
        return numbers[0] if lanes == 1 else Lanes(tuple(numbers))

    # Values

    def value(self, name: str) -> Value:
        found: Value | None = self._known.get(name)
        if found is not None:
            return found
        # All that it is made of is found in the order of the code, loops around it first.
        waiting, missing = [name], dict[str, Instruction]()
        while waiting:
            one = self.instructions.get(top := waiting.pop())
            if top in missing or self._known.get(top) is not None:
                continue
            if one is None:
                self._known[top] = Opaque(reason="a value that is not followed")
                continue
            for loop in self.flow.loops_around(one.block):
                if ("solved", loop.header) not in self._known:
                    self._solve(loop)
            if self._known.get(top) is None:
                missing[top] = one
                waiting.extend(self.list_inputs(one))
        for top in sorted(missing, key=self._places.__getitem__):
            # What is made of itself, in what is no natural loop, is not followed.
            found = self._remember(top, partial(self._apply, missing[top]), Opaque(reason=REASON))
            self._known[top] = refill(found, bound_size)
        value: Value = self._known[name]
        return value

    def assume(self, name: str, value: Value) -> None:
        """Take a result for a value, before others that are made of it are asked for."""
        self._known[name] = value

    def operand(self, operand: Operand, block: str) -> Value:
        return self._find_operand(operand, self.flow.loop_of.get(block))

    def _find_operand(self, operand: Operand, outer: Loop | None) -> Value:
        """Give the value of an operand where a loop uses it, or what is around all loops."""
        kind, text = operand
        if not text.startswith("%"):
            return self._remember(operand, lambda: self._constant(kind, text))
        value, one = self.value(text), self.instructions.get(text)
        inner = None if one is None else self.flow.loop_of[one.block]
        while inner is not None and not (outer is not None and outer.header in inner.blocks):
            symbol = self.symbol(inner)
            if any(symbol in one.symbols() for one in parts_of(value)
                   if not isinstance(one, Opaque)):  # fmt: skip
                facts = self.loop_facts(inner)
                if facts.is_exact and facts.trip_count is not None:
                    last = facts.trip_count if inner.test else facts.trip_count - 1
                    value = refill(value, partial(put_in, replacements={symbol: last}))
                else:
                    sources = sources_of(facts.condition) | self._sources_of_exits(inner.header)
                    # Which buffers pointers point into is known all the same.
                    value = refill(value, partial(blur, Opaque(sources), reason=_LATER))
            inner = inner.parent
        return value

    def _constant(self, kind: str, text: str) -> Value:
        if text in _LITERALS:
            return _LITERALS[text]
        if text.startswith("@"):
            variable = self.module.globals.get(text)
            if variable is None:
                return Opaque(reason="a function")
            if not variable.value and variable.space == 2:
                memory = Memory(text[1:], MemorySpace.CONSTANT, is_given=True)
            elif text.startswith(INITIAL):
                memory = Memory(text, MemorySpace.PRIVATE, text, is_given=True)
            else:
                space = _SPACES.get(variable.space, MemorySpace.GENERIC)
                memory = Memory(self.name_global(text), space, text)
            return Pointer(memory, ZERO)
        if text.startswith("getelementptr"):
            source, *operands = split_list(text[text.index("(") + 1 : -1])
            return self._move([read_operand(one) for one in operands], source, "")
        if text.startswith(_CASTS):
            return self._constant(*read_operand(text[text.index("(") + 1 : text.rindex(" to ")]))
        if not bits_of(kind):
            return _FLOATING
        if text == "zeroinitializer":
            return Lanes((ZERO,) * lanes_of(kind))
        if text.startswith("splat ("):
            return Lanes((self._constant(*read_operand(text[7:-1])),) * lanes_of(kind))
        if text.startswith("<"):
            return Lanes(tuple(
                self._constant(*read_operand(one)) for one in split_list(text[1:-1])
            ))  # fmt: skip
        if not text.lstrip("-").isdigit():
            return Opaque(reason="a constant that is not followed")
        return Expr.constant(int(text))

    def _apply(self, one: Instruction) -> Value:
        opcode, block = one.opcode, one.block
        if opcode == "getelementptr":
            return self._move(one.operands, one.detail, block)
        if opcode == "load":
            return self._read(self.operand(one.operands[0], block), one)
        if opcode == "alloca":
            return Pointer(Memory(one.name[1:], MemorySpace.PRIVATE), ZERO)
        if opcode == "call":
            return self._call(one)
        if opcode == "phi":
            return self._join(one)
        values = [self.operand(each, block) for each in one.operands]
        if opcode in _LANE_WISE:
            return by_lanes(partial(self._calculate, one), *values)
        if opcode == "fcmp":
            return as_condition(blur(*values))
        if not is_followed(one.type):
            return blur(*values, reason=_IN_FLOAT if is_float(one.type) else "")
        if opcode in _CASTS:
            before = one.operands[0][0]
            is_same = opcode != "bitcast" or before.startswith("ptr") or (
                bits_of(before) == bits_of(one.type) and lanes_of(before) == lanes_of(one.type)
            )  # fmt: skip
            return values[0] if is_same else blur(values[0], reason="reinterpreted")
        if opcode == "select":
            chosen, then, otherwise = values
            return by_lanes(
                lambda *each: merge(as_condition(each[0]), *each[1:]), chosen, then, otherwise
            )
        if opcode in ("extractelement", "insertelement", "shufflevector"):
            return _move_lanes(one, *values)
        is_rounded = opcode in ("fptosi", "fptoui")
        return blur(*values, reason=_IN_FLOAT if is_rounded else (
            "an operation that is not followed"))  # fmt: skip

    def _calculate(self, one: Instruction, left: Value, right: Value = ZERO) -> Value:
        opcode, bits = one.opcode, bits_of(one.type)
        if opcode in ("sext", "zext", "trunc"):
            return self._resize(left, one)
        if isinstance(left, PLACES) or isinstance(right, PLACES):
            if not (isinstance(left, Pointer) and isinstance(right, Pointer)
                    and left.memory == right.memory and opcode in ("icmp", "sub")):  # fmt: skip
                return Unknown(()) if opcode == "icmp" else (
                    blur(left, right, reason="a calculation with pointers"))  # fmt: skip
            left, right = left.offset, right.offset
        if (
            opcode == "icmp"
            and isinstance(left, Condition)
            and one.detail in ("eq", "ne")
            and (
                # What is known in part is not followed on through numbers: it would grow with each.
                (left.is_exact and right == ZERO) or (bits == 1 and right in (TRUE, FALSE))
            )
        ):
            return left if (one.detail == "eq") == (right == TRUE) else left.negated()
        if bits == 1 and opcode != "icmp":
            first, second = as_condition(left), as_condition(right)
            if opcode in ("and", "or"):
                return (conjunction if opcode == "and" else disjunction)(first, second)
            differ = disjunction(
                conjunction(first, second.negated()), conjunction(first.negated(), second)
            )
            return differ if opcode == "xor" else as_condition(blur(first, second))
        one_number, other = as_number(left), as_number(right)
        if isinstance(one_number, Opaque) or isinstance(other, Opaque):
            return as_condition(blur(left, right)) if opcode == "icmp" else blur(left, right)
        if opcode == "icmp":
            return self.arithmetic.compare(one.detail, one_number, other, bits)
        return self.arithmetic.combine(
            opcode, one_number, other, bits,
            is_signed="nsw" in one.flags or opcode in ("sdiv", "srem", "ashr"),
        ) or Opaque(reason="an operation that is not followed")  # fmt: skip

    def _move(self, operands: Sequence[Operand], kind: str, block: str) -> Value:
        place = self.operand(operands[0], block)
        for operand, size in self.module.list_steps(kind, operands[1:]):
            place = move_place(place, self.operand(operand, block) if operand else ONE, size)
        return place

    def _resize(self, value: Value, one: Instruction) -> Value:
        """Widen a number, or cut it: what is cut is taken to fit, but for truth values."""
        before, is_signed = bits_of(one.operands[0][0]), one.opcode == "sext"
        if one.opcode == "trunc":
            if bits_of(one.type) != 1 or isinstance(value, Condition):
                return value
            number = as_number(value)
            return as_condition(number if isinstance(number, Opaque) else floor_mod(number, 2))
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

    def _join(self, phi: Instruction) -> Value:
        flow, around = self.flow, self.flow.loop_of[phi.block]
        sides: list[Value] = []
        ways: list[list[Term] | None] = []
        for operand, label in zip(phi.operands, phi.labels, strict=True):
            if label in flow.place:
                sides.append(self._find_operand(operand, around))
                edge = flow.successors[label].index(phi.block)
                ways.append(flow.terms_into(label, edge, phi.block, around))
        if all(value == sides[0] for value in sides):
            return sides[0]
        if not is_followed(phi.type):
            return blur(*sides, reason=_IN_FLOAT)
        every: list[Term] = [term for terms in ways for term in terms or ({},)]
        common = {key for key, edge in every[0].items()
                  if all(term.get(key) == edge for term in every)}  # fmt: skip
        conditions = [
            self._meet(terms and [
                {key: edges for key, edges in term.items() if key not in common} for term in terms
            ])
            for terms in ways
        ]  # fmt: skip
        if phi.type == "i1":
            return disjunction(*(
                conjunction(condition, as_condition(value))
                for condition, value in zip(conditions, sides, strict=True)
            ))  # fmt: skip
        # One that is met wherever no other is needs no condition of its own: the longest.
        order = sorted(range(len(sides)), key=lambda one: (-len(str(conditions[one])), -one))
        reached = [one for one in order if conditions[one] != FALSE]
        if not reached:
            return blur(*sides)
        result = sides[reached[0]]
        for one in reached[1:]:
            result = merge(conditions[one], sides[one], result)
        return result

    def _meet(self, terms: list[Term] | None) -> Condition:
        if terms is None:
            return UNKNOWN
        return disjunction(*(
            conjunction(*(self.choice(key, edges) for key, edges in term.items()))
            for term in terms
        ))  # fmt: skip

    def choice(self, key: str, edges: frozenset[int]) -> Condition:
        """Give the condition that a block is left by some of its edges."""
        if key.startswith(LEFT):
            return Unknown(tuple(sorted(self._sources_of_exits(key[len(LEFT) :]))))
        end = self.flow.terminator(key)
        if end.opcode == "br":
            condition = as_condition(self.operand(end.operands[0], key))
            return condition if 0 in edges else condition.negated()
        if end.opcode != "switch":
            return UNKNOWN
        number = as_number(self.operand(end.operands[0], key))
        if isinstance(number, Opaque):
            return as_condition(number)
        cases = [Expr.constant(int(value)) for _, value in end.operands[1:]]
        if 0 not in edges:
            return disjunction(*(equal(number, cases[edge - 1]) for edge in sorted(edges)))
        others = [one for edge, one in enumerate(cases, start=1) if edge not in edges]
        return conjunction(*(not_equal(number, one) for one in others))

    def _sources_of_exits(self, header: str) -> frozenset[str]:
        """Give the buffers on which it depends how a loop is left."""
        exits = {label for label, _ in self.flow.loop_at[header].exits}
        asked = exits.union(*(term for label in exits for term in self.flow.terms[label] or ()))
        ends = (self.flow.terminator(label) for label in asked if not label.startswith(LEFT))
        values = (value for end in ends for _, value in end.operands[:1] if value.startswith("%"))
        return self._remember(
            ("sources", header), lambda: sources_of(*map(self.value, values)), frozenset()
        )

    def guard(self, block: str) -> Condition:
        flow, around = self.flow, self.flow.loop_of[block]
        terms = flow.terms[block]
        if around is not None and around.header == block:
            terms, around = flow.terms_of_header(around), around.parent
        return self._remember(("guard", block), lambda: as_condition(bound_size(conjunction(
            TRUE if around is None else self.guard(around.header), self._meet(terms),
        ))))  # fmt: skip

    # Loops

    def loop_facts(self, loop: Loop) -> LoopFacts:
        # A loop's end may depend on values of it that are used outside.
        return self._remember(("loop", loop.header), lambda: self._describe(loop), LoopFacts(
            name=self.symbol(loop).name, line=0, condition=UNKNOWN, trip_count=None,
            is_exact=False,
        ))  # fmt: skip

    def _describe(self, loop: Loop) -> LoopFacts:
        flow, symbol, limits = self.flow, self.symbol(loop), self.largest_unsigned
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
        asked = conjunction(*stays) if test is None else test
        count, is_counted = count_iterations(asked, symbol, limits)
        ends = ends_for_good(asked, symbol)
        is_exact = is_counted or (asked != TRUE and ends)
        condition = asked
        if test is None:
            # What ends an iteration are the conditions on which another one follows.
            count = None if count is None else count + 1
            if not stays:
                condition = UNKNOWN if leaves else TRUE
            elif is_counted and count is not None:
                condition = less(symbol, count)
            else:
                earlier = asked.substitute({symbol: Expr.symbol(symbol) - 1})
                condition = disjunction(equal(symbol, 0), earlier)
        elif is_counted and count is not None and not ends:
            condition = less(symbol, count)
        for again in () if test is None else stays:
            more, is_known = count_iterations(again, symbol, limits)
            if more is not None and is_known:
                count = more + 1 if count is None else minimum(count, more + 1)
                condition = conjunction(condition, less(symbol, more + 1))
            else:
                is_exact = False
        return LoopFacts(
            name=symbol.name, line=self.loop_line(loop.header), condition=condition,
            trip_count=count, is_exact=is_exact and not leaves,
        )  # fmt: skip

    def _solve(self, loop: Loop) -> None:
        self._known["solved", loop.header] = True
        phis = [one for one in self.flow.blocks[loop.header]
                if one.opcode == "phi" and one.name not in self._known]  # fmt: skip
        starts = {phi.name: self._merge_sides(phi, loop, is_start=True) for phi in phis}
        befores = {
            name: [Symbol(SymbolKind.SCALAR, f"{_BEFORE}{name}.{at}")
                   for at, _ in enumerate(parts_of(start))]
            for name, start in starts.items()
        }  # fmt: skip
        known = len(self._known)
        for phi in phis:
            start = starts[phi.name]
            known_as = exchange(start, map(Expr.symbol, befores[phi.name]))
            self._known[phi.name] = known_as if is_followed(phi.type) else blur(start)
        ends = {phi.name: self._merge_sides(phi, loop, is_start=False) for phi in phis}
        while len(self._known) > known:
            self._known.popitem()
        shapes = [{name: refill(one, lambda _: ZERO) for name, one in values.items()}
                  for values in (starts, ends)]  # fmt: skip
        others = {name for name in ends if shapes[0][name] != shapes[1][name]}
        at_first: dict[Symbol, Leaf] = {}
        afters: dict[Symbol, Leaf] = {}
        for name, own in befores.items():
            end = ends[name]
            parts = repeat(blur(end, reason=REASON)) if name in others else parts_of(end)
            at_first |= zip(own, map(as_number, parts_of(starts[name])), strict=True)
            afters |= zip(own, map(as_number, parts), strict=False)
        solved = solve_numbers(at_first, afters, self.symbol(loop))
        for name, own in befores.items():
            start, end = starts[name], ends[name]
            if name not in others:
                self._known[name] = exchange(start, map(solved.__getitem__, own))
                continue
            self._known[name] = blurred = blur(start, end, reason=REASON)
            if isinstance(start, Pointer) and isinstance(end, Pointer):
                # What is left are the buffers that it may point into.
                self._known[name] = Choice(
                    UNKNOWN, Pointer(start.memory, blurred), Pointer(end.memory, blurred)
                )

    def _merge_sides(self, phi: Instruction, loop: Loop, *, is_start: bool) -> Value:
        """Give what a value is where a loop begins, or begins again, if that is one by all ways."""
        sides = [
            self._find_operand(operand, loop.parent if is_start else loop)
            for operand, label in zip(phi.operands, phi.labels, strict=True)
            if label in self.flow.place and (label in loop.blocks) != is_start
        ]  # fmt: skip
        return sides[0] if all(one == sides[0] for one in sides) else blur(*sides, reason=REASON)

    # Memory

    def _read(self, place: Value, one: Instruction) -> Value:
        if isinstance(place, Choice):
            return blur(*(self._read(each, one) for _, each in places_of(place)))
        if not isinstance(place, Pointer):
            return blur(place)
        memory, offset = place.memory, place.offset
        constant = offset.constant_value if isinstance(offset, Expr) else None
        if memory.is_given and memory.space is MemorySpace.CONSTANT:
            # A name that the source does not define.
            self.largest_unsigned[memory.name] = (1 << 31) - 1
            return Expr.symbol(Symbol(SymbolKind.SCALAR, memory.name))
        if memory.is_given and not memory.variable:
            if constant is None:
                return Opaque(reason=_OWN_ARRAY)
            size = 8 * self.module.size_of(one.type)
            note = self.parameter_notes.get(f"%{memory.name}", -1)
            part = self.notes.name_part(note, constant, size)
            if part is None:
                return Opaque(reason="a part of a structure")
            named = self._name_number(f"{memory.name}{part[0]}", one.type, part[1])
            element_bytes = bits_of(one.type) // 8
            for lane, each in enumerate(parts_of(named)):
                for symbol in each.symbols() if isinstance(each, Expr) else ():
                    self.fields[symbol.name] = ContentRead(
                        name=symbol.name, buffer=memory.name, element_bytes=element_bytes,
                        offset_bytes=Expr.constant(constant + lane * element_bytes),
                        is_signed=not part[1].is_unsigned,
                    )  # fmt: skip
            return named
        variable = self.module.globals.get(
            memory.variable or self.tables.get(f"%{memory.name}", "")
        )
        if variable is not None and variable.is_constant and isinstance(offset, Expr):
            found = self._initial(variable, offset, one.type)
            if found is not None:
                return found
        if memory.is_given:
            return Opaque(reason="an initial value that is not followed")
        if memory.space is MemorySpace.PRIVATE:
            held = Opaque(frozenset(self.held[f"*%{memory.name}"]))
            return blur(held, offset, reason=_OWN_ARRAY)
        if memory.name in self.known_buffers and bits_of(one.type) and not is_vector(one.type):
            content = self._content(place, one)
            if content is not None:
                return content
        return Opaque(frozenset({memory.name}))

    def _content(self, place: Pointer, one: Instruction) -> Expr | None:
        """Give the symbol of a whole number in a buffer whose content is known."""
        offset = place.offset
        if not isinstance(offset, Expr) or any(
            each.kind is SymbolKind.LOOP or each.name.startswith(_BEFORE)
            for each in offset.symbols()
        ):
            return None
        pointer = self.type_of(f"%{place.memory.name}")
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

    def _initial(self, variable: Global, offset: Expr, wanted: str) -> Value | None:
        """Read whole numbers of an initial value; other offsets choose among a small table."""
        bits, size = bits_of(wanted), self.module.size_of(wanted)
        try:
            content = self._remember(
                ("initial", variable.name),
                lambda: self.module.encode(variable.type, variable.value),
            )
        except ValueError:
            return None
        at, behind = offset.constant_value, len(content) - size + 1
        places = range(at, at + 1) if at is not None else range(0, behind, size)
        if at is None and any(factor % size for _, factor in offset.products):
            return None
        if bits < 8 or not 0 < len(places) <= _MOST_PLACES or not 0 <= places[0] < behind:
            return None
        numbers = [
            Lanes(tuple(
                Expr.constant(int.from_bytes(content[one : one + bits // 8], "little", signed=True))
                for one in range(place, place + lanes_of(wanted) * bits // 8, bits // 8)
            ))
            for place in places
        ]  # fmt: skip
        value: Value = numbers[-1]
        for place, number in zip(places[-2::-1], numbers[-2::-1], strict=True):
            value = merge(equal(offset, place), number, value)
        return value if is_vector(wanted) or not isinstance(value, Lanes) else value.lanes[0]

    # Built-in functions

    def _call(self, one: Instruction) -> Value:
        name = name_called(one)
        values = [self.operand(each, one.block) for each in one.operands if each[0] != "metadata"]
        if name in _IDS:
            [asked], kind = values, _IDS[name]
            axis = asked.constant_value if isinstance(asked, Expr) else None
            if axis is None:
                return Opaque(reason=f"{name} of a dimension that is not constant")
            if not 0 <= axis < MAX_DIMENSIONS:
                return Expr.constant(int(kind in _SIZES))
            return Expr.symbol(Symbol(kind, axis=axis))
        if name in _LINEAR_IDS:
            number = ZERO
            for axis in reversed(range(MAX_DIMENSIONS)):
                size, own, *start = (Symbol(kind, axis=axis) for kind in _LINEAR_IDS[name])
                number = number * size + own - (start[0] if start else 0)
            return number
        is_function = one.detail in self.module.functions  # it was not inlined
        if is_function or name.startswith(("vload", "atom")):
            return blur(*(
                Opaque(frozenset((each.memory.name,))) for value in values
                for _, each in places_of(value) if isinstance(each, Pointer)
            ), *(values if is_function else ()), reason="a value in memory")  # fmt: skip
        if not bits_of(one.type):
            return blur(*values, reason=_FLOATING.reason)
        are_vectors = any(isinstance(each, Lanes) for each in values)
        # Vectors are selected from by the sign of each lane.
        if are_vectors and (name == "select" or not is_vector(one.type)):
            return blur(*values)
        return by_lanes(partial(self._call_builtin, name, one), *values)

    def _call_builtin(self, name: str, one: Instruction, *values: Value) -> Value:
        if name == "select" and len(values) == 3:
            return merge(as_condition(values[2]), values[1], values[0])
        numbers = [each for each in map(as_number, values) if isinstance(each, Expr)]
        if len(numbers) < len(values):
            return blur(*values)
        if converted := _CONVERSION.fullmatch(name):
            bits, is_signed = _CONVERTED_BITS[converted[2]], not converted[1]
            if not converted[3]:
                return self.arithmetic.widen(numbers[0], bits, is_signed=is_signed)
            low = -(1 << (bits - 1)) if is_signed else 0
            limited = minimum(maximum(numbers[0], low), low + (1 << bits) - 1)
            return limited if bits < 32 else numbers[0]
        is_signed = not mangled_types(one).lstrip("Dv0123456789_").startswith(("j", "m", "t", "h"))
        name = {"llvm.smin": "min", "llvm.smax": "max", "llvm.abs": "abs"}.get(
            name.rpartition(".")[0], name)  # fmt: skip
        if name == "abs":
            number = numbers[0]
            is_natural = is_non_negative(number, self.largest_unsigned)
            return number if is_natural else maximum(number, -number)
        found: Expr | None = numbers[0] if name in _BUILTINS else None
        for opcode, number in zip(_BUILTINS.get(name, ()), numbers[1:], strict=False):
            found = found and self.arithmetic.combine(
                opcode, found, number, bits_of(one.type), is_signed=is_signed)  # fmt: skip
        return found or Opaque(reason=f"{name}() is not followed")


def move_place(place: Value, index: Value, size: int) -> Value:
    number = as_number(index)

    def move(part: Part) -> Value:
        if isinstance(part, Expr) and isinstance(number, Expr):
            return part + number * size
        return part if isinstance(part, Condition) else blur(part, number)

    if isinstance(place, PLACES):
        return refill(place, move)
    return blur(place, number, reason="a pointer that is not followed")


def _move_lanes(one: Instruction, *values: Value) -> Value:
    count = lanes_of(one.operands[0][0])
    vector, second, last = values[0], values[1], values[-1]
    if one.opcode == "shufflevector":
        sides = (each.lanes if isinstance(each, Lanes) else (each,) * count
                 for each in (vector, second))  # fmt: skip
        lanes = [*chain.from_iterable(sides)]
        numbers = [lane.constant_value if isinstance(lane, Expr) else None
                   for lane in (last.lanes if isinstance(last, Lanes) else ())]  # fmt: skip
        return Lanes(tuple(
            _UNSET if at is None or at >= len(lanes) else lanes[at] for at in numbers
        )) if numbers else blur(vector, second)  # fmt: skip
    if one.opcode == "insertelement" and isinstance(vector, Opaque):
        vector = Lanes((vector,) * count)
    at = last.constant_value if isinstance(last, Expr) else None
    if at is None or not isinstance(vector, Lanes) or not 0 <= at < count:
        return blur(*values, reason="lanes of a vector that is not followed")
    if one.opcode == "extractelement":
        return vector.lanes[at]
    return Lanes((*vector.lanes[:at], second, *vector.lanes[at + 1 :]))
