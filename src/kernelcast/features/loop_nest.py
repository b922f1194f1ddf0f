"""Plain loops of C read into a `LoopNest`: compiled as a kernel of one work-item."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from operator import mul
from typing import Final, NoReturn, TypeAlias

from kernelcast.compiling import Target, compile_kernel
from kernelcast.compiling.inlining import read_inlined
from kernelcast.compiling.ir import Instruction, Operand
from kernelcast.expressions import (
    FALSE,
    TRUE,
    Condition,
    Expr,
    Extremum,
    Symbol,
    SymbolKind,
    conjunction,
    disjunction,
    equal,
)
from kernelcast.expressions.loop_nest import (
    LoopNest,
    NestAccess,
    NestLoop,
    split_address,
)
from kernelcast.features.analysis import read_errors
from kernelcast.features.ir.control import Loop
from kernelcast.features.ir.debug import Place, read_expression, read_operand_before
from kernelcast.features.ir.operations import (
    count_instruction,
    is_float,
    make_operation,
    number_of,
)
from kernelcast.features.ir.scalars import Evaluator, is_followed
from kernelcast.features.ir.values import Opaque, Pointer
from kernelcast.records.errors import CompileError, InputError
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    Operation,
    OperationCounts,
    OperationKind,
    add_weighted,
)
from kernelcast.records.source_text import blank

_FILE: Final = "<source>"
_KERNEL: Final = "kernelcast_nest"
_SIZES: Final = "kernelcast_sizes"
_LEFT: Final = "kernelcast_left"
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_IGNORED: Final = re.compile(r"^[ \t]*#[ \t]*(?:include|pragma)[^\n]*", re.MULTILINE)
_LOOP: Final = re.compile(r"\b(?:for|while|do)\b")
_DECLARATION: Final = re.compile(r"\s*((?:[A-Za-z_]\w*\s+)+)(?=[A-Za-z_*])([^;]*);")
_DECLARATOR: Final = re.compile(r"\s*(\**)\s*([A-Za-z_]\w*)\s*((?:\[[^][]*\]\s*)*)(?:=(.*))?")
_COMMA: Final = re.compile(r",(?![^(\[{]*[)\]}])")
_UNDECLARED: Final = re.compile(r"use of undeclared identifier '(\w+)'")
_STORAGE: Final = re.compile(r"\b(?:const|static|register|restrict|volatile|extern)\b\s*")
_FUNCTIONS: Final = (
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh erf "
    "pow hypot atan2 fmod fmin fmax fabs floor ceil fma"
)
# Functions of C that OpenCL C names otherwise; both ends of blocks may be of any width.
_MACROS: Final = "\n".join((
    "#pragma OPENCL FP_CONTRACT OFF",
    *(f"#define {name}(a, b) {name.lower()}((long)(a), (long)(b))"
      for name in ("min", "max", "MIN", "MAX")),
    *(f"#define {name}f {name}" for name in _FUNCTIONS.split()),
))  # fmt: skip
_FORM: Final = "expected `for (int i = start; i < stop; i += step)`"
_EXPECTED: Final = "the innermost loop may only hold assignments, if, else and continue"
_ORDERS: Final = frozenset(f"{sign}{order}" for sign in "ous" for order in
                           ("lt", "le", "gt", "ge"))  # fmt: skip
_SIGNS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

_Element: TypeAlias = tuple[str, tuple[Expr, ...], Expr]
"""Array, strides and offset, as of an access."""


def read_loop_nest(source: str, constants: Mapping[str, int], *, name: str = "") -> LoopNest:
    """Read a loop nest; elements move once an iteration, index arithmetic is free."""
    return _Nest(Listing(source, name or "<listing>"), constants).read()


class Listing:
    def __init__(self, source: str, name: str) -> None:
        self.name = name
        self.lines = source.splitlines()
        plain = _COMMENT.sub(blank, source)
        text = _IGNORED.sub(blank, plain)
        first = _LOOP.search(text)
        if first is None:
            raise InputError(f"{name}: no loop; give declarations and one loop nest")
        self.arrays: dict[str, tuple[str, list[str]]] = {}
        """Type of the elements and sizes, as written."""
        self.scalars: dict[str, tuple[str, str]] = {}
        """Type and initial value, empty where there is none."""
        self.directives = re.findall(r"^[ \t]*#.*", plain[: first.start()], re.MULTILINE)
        self.loop = source[first.start() :]
        self._body = _DECLARATION.sub(self._declare, text[: first.start()]) + text[first.start() :]

    def _declare(self, match: re.Match[str]) -> str:
        """Note what a declaration declares, and take it out."""
        kind = _STORAGE.sub("", match[1]).strip()
        found = [_DECLARATOR.fullmatch(one.rstrip()) for one in _COMMA.split(match[2])]
        if not kind or None in found:
            msg = f"{self.name}: {match[0].strip()} declares neither numbers nor arrays of numbers"
            raise InputError(msg)
        for one in found:
            pointer, name, sizes, value = one.groups() if one else ("", "", "", "")
            if pointer:
                raise InputError(
                    f"{self.name}: {name} is a pointer, and what it points to is not known; "
                    "declare it as an array"
                )
            dimensions = re.findall(r"\[([^][]*)\]", sizes)
            if not all(each.strip() for each in dimensions):
                raise InputError(f"{self.name}: array {name} of unknown size; give each dimension")
            if dimensions:
                self.arrays[name] = (kind, dimensions)
            else:
                self.scalars[name] = (kind, (value or "").strip())
        return blank(match)

    def compile(self, constants: Mapping[str, int]) -> str:
        """Compile the kernel; names that nothing declares become arguments of it."""
        names = [one for one in constants if one not in {*self.arrays, *self.scalars}]
        while True:
            try:
                return compile_kernel(
                    self._write(names), ("-cl-std=CL3.0",), Target.parse("ir"), source_name=_FILE
                ).text
            except CompileError as error:
                more = [
                    one for one in dict.fromkeys(_UNDECLARED.findall(str(error)))
                    if one not in names and not re.search(rf"\b{one}\s*\(", self._body)
                ]  # fmt: skip
                names += more
                if more:
                    continue
                # Of a declaration that cannot be read, clang first says its sizes are variable.
                errors = read_errors(error) or [str(error)]
                told = (one for one in errors if "variable length arrays" not in one)
                where, _, words = next(told, errors[-1]).partition(": ")
                place = where.removeprefix(_FILE) if where.startswith(_FILE) else ""
                msg = (
                    f"{self.name}{place}: {words or where}; give C99 declarations and one loop nest"
                )
                raise InputError(msg) from error

    def _write(self, names: list[str]) -> str:
        given = {name: kind for name, (kind, value) in self.scalars.items() if not value}
        # OpenCL C has no arrays of variable sizes; so indices stand apart in the code.
        parameters = [
            *(f"global {kind} {'*global ' * (len(sizes) - 1)}*{name}"
              for name, (kind, sizes) in self.arrays.items()),
            *(f"{kind} {name}" for name, kind in given.items()),
            *(f"const long {name}" for name in names),
            f"global long *{_SIZES}", f"global double *{_LEFT}",
        ]  # fmt: skip
        sizes = [
            size for kind, dimensions in self.arrays.values()
            for size in (f"sizeof({kind})", *dimensions)
        ]  # fmt: skip
        return "\n".join((
            '#line 1 "<declarations>"', _MACROS,
            f"kernel void {_KERNEL}({', '.join(parameters)}) {{",
            *(f"{kind} {name} = {value};" for name, (kind, value) in self.scalars.items() if value),
            *(f"{_SIZES}[{number}] = {size};" for number, size in enumerate(sizes)),
            f'#line 1 "{_FILE}"', self._body,
            *(f"{_LEFT}[{number}] = {name};" for number, name in enumerate(given)), "}",
        ))  # fmt: skip


class _Nest:
    def __init__(self, listing: Listing, constants: Mapping[str, int]) -> None:
        self._listing, self._constants = listing, constants
        self._module = module = read_inlined(listing.compile(constants), _KERNEL)
        self._evaluator = Evaluator(module, _KERNEL, _FILE)
        self._flow, self._places = self._evaluator.flow, self._evaluator.notes
        self._instructions = self._evaluator.instructions
        self._arrays: dict[str, tuple[Expr, list[Expr]]] = {}
        """Bytes of an element, and elements per dimension, slowest first."""
        self._loops: list[NestLoop] = []
        self._counter = ""
        self._own: dict[Symbol, Symbol] = {}
        """Numbers of iterations by the names of the loops."""
        self._guards: dict[str, Condition] = {}
        """By block of the innermost loop, the iterations that execute it, if any do."""
        self._loaded: dict[str, _Element] = {}
        """By load that is executed, what it loads."""
        self._held_value: dict[str, str] = {}
        """By load whose element a register holds, what is held."""
        self._extrema: dict[str, str] = {}
        """By the comparison that it needs no more, what chooses the greater or the lesser."""
        self._accesses: dict[tuple[bool, _Element], NestAccess] = {}
        """Stores and loads apart."""
        self._stored: list[tuple[_Element, str]] = []
        self._executed: dict[str, list[str]] = {}
        self._repeated = 0

    def read(self) -> LoopNest:
        self._read_arrays()
        inner = self._read_loops()
        if any(label != inner.test for label, _ in inner.exits):
            self._refuse(f"the loop over {self._loops[-1].name} is left early, as by break or "
                         f"return; {_EXPECTED}", self._places_of(inner))  # fmt: skip
        labels = [one for one in self._flow.order if one in inner.blocks]
        self._decide(labels)
        for label in labels:
            guard = self._evaluator.guard(label).substitute(self._own)
            if not guard.is_exact:
                self._refuse("the iterations that reach this are not known",
                             self._place(self._flow.terminator(label)))  # fmt: skip
            if guard != FALSE:
                self._guards[label] = guard
        self._note_accesses()
        self._find_extrema()
        operations: dict[Condition, Counter[Operation]] = defaultdict(Counter)
        for label, guard in self._guards.items():
            for one in self._flow.blocks[label]:
                counts = self._count(one, inner)
                operations[guard] += counts
                self._executed[one.name] = [str(each) for each in counts.elements()]
        chain = self._find_chain(inner)
        accesses = sorted(self._accesses.values(), key=lambda one: one.is_store)
        if not accesses:
            self._refuse("no array is read or written; give a loop over arrays", None)
        parts = [
            (guard, OperationCounts(operations=dict(counts), memory={}))
            for guard, counts in operations.items() if counts
        ]  # fmt: skip
        for access in accesses:
            moved = MemoryOperation(
                space=MemorySpace.GLOBAL, is_store=access.is_store, bytes=access.bytes
            )
            parts.append((access.condition, OperationCounts(operations={}, memory={moved: 1})))
        # By the iterations that execute them, `TRUE` for all.
        branches = {
            guard: add_weighted((counts, 1) for own, counts in parts if own == guard)
            for guard in dict.fromkeys((TRUE, *(guard for guard, _ in parts)))
        }
        note = (
            f"{self._repeated} repeated accesses to an element within an iteration are taken to be "
            "held in registers"
        )
        return LoopNest(
            name=self._listing.name, loops=tuple(self._loops), accesses=tuple(accesses),
            arrays={name: reduce(mul, extents, width)
                    for name, (width, extents) in self._arrays.items()},
            executed=add_weighted([(one, 1) for one in branches.values()]),
            constants=dict(self._constants), chain=chain, notes=(note,) if self._repeated else (),
            branches=tuple(one for one in branches.items() if one[0] != TRUE),
        )  # fmt: skip

    def _refuse(self, problem: str, place: Place | None) -> NoReturn:
        where = f":{place.line}:{place.column}" if place is not None and place.line else ""
        raise InputError(f"{self._listing.name}{where}: {problem}")

    def _place(self, one: Instruction) -> Place | None:
        return self._places.place(one.note)

    def _number(self, operand: Operand, block: str) -> Expr | None:
        value = self._evaluator.operand(operand, block)
        return value.substitute(self._own) if isinstance(value, Expr) else None

    # Arrays and loops

    def _read_arrays(self) -> None:
        stored = [
            self._number(one.operands[0], one.block) for one in self._flow.blocks[self._flow.entry]
            if one.opcode == "store"
            and isinstance(place := self._evaluator.operand(one.operands[1], one.block), Pointer)
            and place.memory.name == _SIZES
        ]  # fmt: skip
        sizes = iter(stored)
        for name, (kind, dimensions) in self._listing.arrays.items():
            width, *extents = [next(sizes, None) for _ in (kind, *dimensions)]
            known = [one for one in extents if one is not None]
            if width is None or len(known) < len(extents):
                self._refuse(f"array {name} of unknown size; give each dimension", None)
            self._arrays[name] = width, known

    def _places_of(self, loop: Loop) -> Place | None:
        numbers = self._places.numbers(self._flow.terminator(loop.latches[0]).loop_note)
        places = (self._places.place(one) for one in numbers)
        return next((one for one in places if one is not None), None)

    def _read_loops(self) -> Loop:
        """Enter each loop, and find the innermost one."""
        loops: list[Loop] = []
        while True:
            parent = loops[-1] if loops else None
            inside = [one for one in self._flow.loops if one.parent is parent]
            inside.sort(key=lambda one: self._flow.place[one.header])
            if len(inside) > 1:
                what = "a second loop beside another one; give one loop per level"
                if parent is None:
                    what = "a second loop nest; give one at a time"
                self._refuse(what, self._places_of(inside[1]))
            if not inside:
                break
            loops += inside
        if not loops:
            self._refuse("no loop that runs more than once", None)
        for loop in loops:
            self._enter(loop)
        outer, inner = loops[0], loops[-1]
        # Between loops stand conditions on their variables only.
        for label in self._flow.order:
            if label not in outer.blocks - inner.blocks:
                continue
            end = self._flow.terminator(label)
            if end.operands and not self._evaluator.choice(label, frozenset((0,))).is_exact:
                self._refuse(
                    "a condition between loops depends on data; expected a comparison of sums of "
                    "loop variables times constants, or the condition in the innermost loop",
                    self._place(end),
                )
            for one in self._flow.blocks[label]:
                if one.opcode in ("load", "store") or (
                    one.name and one.opcode != "phi" and is_float(one.type)
                ):
                    self._refuse("statements beside an inner loop; only the innermost loop may "
                                 "hold any", self._place(one))  # fmt: skip
        return inner

    def _enter(self, loop: Loop) -> None:
        evaluator, place = self._evaluator, self._places_of(loop)
        ends = self._flow.terminator(loop.test).operands[:1] if loop.test else ()
        counters = [
            one.name for one in self._flow.blocks[loop.header]
            if one.opcode == "phi" and is_followed(one.type)
            and any(value in evaluator.find_dependent(loop, one.name) for _, value in ends)
        ]  # fmt: skip
        if len(counters) != 1:
            self._refuse(f"a loop without start, condition and step; {_FORM}", place)
        [self._counter] = counters
        name, symbol = self._counter[1:].partition(".")[0], evaluator.symbol(loop)
        value = evaluator.value(self._counter)
        parts = value.split(symbol) if isinstance(value, Expr) else None
        if parts is None or parts[1].is_zero or not parts[1].is_parameter:
            self._refuse(f"the loop over {name} starts or steps by no sum of loop variables and "
                         f"constants; {_FORM}", place)  # fmt: skip
        self._own[symbol] = Symbol(SymbolKind.LOOP, name)
        facts, step = evaluator.loop_facts(loop), parts[1]
        if facts.trip_count is None:
            stays = facts.condition.substitute(self._own)
            self._refuse(f"the loop over {name} by {step} goes on while {stays}; {_FORM}", place)
        trips = facts.trip_count.substitute(self._own)
        atom = trips.sole_atom
        if isinstance(atom, Extremum) and not atom.is_least and atom.right.is_zero:
            trips = atom.left  # which is as good: a loop that never runs is refused
        line = place.line if place is not None else 0
        self._loops.append(NestLoop(name=name, trips=trips, step=step, line=line))

    # What an iteration does

    def _find_element(self, one: Instruction) -> _Element:
        """Find the element that is loaded or stored."""
        address = one.operands[one.opcode == "store"][1]
        outermost = at = self._instructions.get(address)
        indices: list[Expr | None] = []
        while True:
            index: Expr | None = Expr.constant(0)
            if at is not None and at.opcode == "getelementptr":
                index = self._number(at.operands[1], at.block)
                address = at.operands[0][1]
                at = self._instructions.get(address)
            indices.insert(0, index)
            if at is None or at.opcode != "load":
                break
            address = at.operands[0][1]
            at = self._instructions.get(address)
        array = self._arrays.get(address[1:])
        notes = [each.note for each in (outermost, one) if each is not None]
        written = self._places.read_object(self._listing.lines, *notes)[1] or "an access"
        if array is None or len(indices) != len(array[1]):
            self._refuse(f"{written}: no element of an array that the listing declares",
                         self._place(one))  # fmt: skip
        offset, (width, extents) = Expr.constant(0), array
        for extent, index in zip(extents, indices, strict=True):
            offset = offset * extent + (index or 0)
        parts = split_address(offset * width, self._loops)
        if None in indices or parts is None:
            self._refuse(f"an index of {written} is not affine; expected a sum of loop variables "
                         "times constants", self._place(one))  # fmt: skip
        return (address[1:], *parts)

    def _note_accesses(self) -> None:
        """Note loads, unless a register holds the element, and stores: once, at the end."""
        held: dict[str, dict[_Element, str]] = {}
        for label, guard in self._guards.items():
            before = [held[one] for one, _ in self._flow.predecessors[label] if one in held]
            here = held[label] = dict(before[0]) if before else {}
            for other in before[1:]:
                here = held[label] = {
                    key: value if other[key] == value else "" for key, value in here.items()
                    if key in other
                }  # fmt: skip
            for one in self._flow.blocks[label]:
                if one.opcode not in ("load", "store") or one.type.startswith("ptr"):
                    continue
                element = self._find_element(one)
                is_store = one.opcode == "store"
                if is_store:
                    here[element] = one.operands[0][1]
                    self._stored.append((element, here[element]))
                elif element in here:
                    self._held_value[one.name] = here[element]
                    self._repeated += 1
                    continue
                else:
                    here[element] = one.name
                    self._loaded[one.name] = element
                earlier = self._accesses.get((is_store, element))
                if earlier is None:
                    self._accesses[is_store, element] = NestAccess(
                        array=element[0], strides=element[1], offset=element[2], is_store=is_store,
                        bytes=self._module.size_of(one.type), condition=guard,
                    )  # fmt: skip
                    continue
                if is_store and conjunction(earlier.condition, guard) != FALSE:
                    self._repeated += 1
                either = disjunction(earlier.condition, guard)
                self._accesses[is_store, element] = replace(earlier, condition=either)

    def _root(self, value: str) -> str:
        """Give the value that a register holds in the place of a load."""
        while self._held_value.get(value):
            value = self._held_value[value]
        return value

    def _find_extrema(self) -> None:
        """Find comparisons that are not made: the greater or the lesser is chosen at once."""
        for one in (one for label in self._guards for one in self._flow.blocks[label]):
            asked, chosen = "", one.operands
            if one.opcode == "select":
                asked, chosen = one.operands[0][1], one.operands[1:]
            elif one.opcode == "phi" and len(chosen) == 2 and one.block not in self._flow.loop_at:
                ends = [self._flow.terminator(key) for key in self._flow.find_branches(one)]
                if (
                    len(ends) == 1
                    and ends[0].opcode == "br"
                    and all(
                        each.name not in self._loaded  # nothing else is done on either side
                        and each.opcode in ("getelementptr", "br", "load", "sext")
                        for label in {*ends[0].labels} - {one.block}
                        for each in self._flow.blocks[label]
                    )
                ):
                    asked = ends[0].operands[0][1]
            test = self._instructions.get(asked)
            if test is not None and test.opcode in ("fcmp", "icmp") and test.detail in _ORDERS:
                sides = [sorted(self._root(value) for _, value in each)
                         for each in (chosen, test.operands)]  # fmt: skip
                if sides[0] == sides[1]:
                    self._extrema[test.name] = one.name

    def _decide(self, labels: Iterable[str]) -> None:
        """Name the conditions on data as the source has them."""
        names: set[str] = set()
        for label in labels:
            end = self._flow.terminator(label)
            if not end.operands or not end.operands[0][1].startswith("%"):
                continue
            if self._evaluator.choice(label, frozenset((0,))).is_exact:
                continue
            if end.opcode != "br":
                self._refuse(f"a switch on data; {_EXPECTED}", self._place(end))
            name = self._describe(end)
            if name in names:
                name += f", condition {len(names) + 1}"
            names.add(name)
            decided = equal(Symbol(SymbolKind.CONTENT, name), 1)
            self._evaluator.assume(end.operands[0][1], decided)

    def _describe(self, end: Instruction) -> str:
        test = self._instructions.get(end.operands[0][1], end)
        place = self._place(test) or self._place(end)
        if place is None or not 0 < place.line <= len(self._listing.lines):
            return "a condition"
        line, start = self._listing.lines[place.line - 1], place.column - 1
        sign = _SIGNS.get(test.detail[-2:], "") if test.opcode in ("fcmp", "icmp") else ""
        if sign and line[start:].startswith(sign):
            rest = start + len(sign)
            rest += len(line[rest:]) - len(line[rest:].lstrip())
            after = read_expression(self._listing.lines, place.line - 1, rest)
            text = f"{read_operand_before(line[:start])} {sign} {after}"
        else:
            text = read_expression(self._listing.lines, place.line - 1, start) or "a condition"
        return f"{' '.join(text.split())} in line {place.line}"

    def _count(self, one: Instruction, inner: Loop) -> Counter[Operation]:
        counts: Counter[Operation] = Counter()
        is_free = one.opcode in ("load", "getelementptr", "alloca") or one.name in self._extrema
        if not one.name or is_free:
            return counts
        value = self._evaluator.value(one.name)
        is_known = isinstance(value, Expr) or (isinstance(value, Condition) and value.is_exact)
        if one.opcode == "phi":
            # A condition that changes from iteration to iteration selects a value under a mask.
            asked = frozenset().union(*(
                self._evaluator.choice(key, frozenset((0,))).substitute(self._own).symbols()
                for key in self._flow.find_branches(one)
            ))  # fmt: skip
            own = Symbol(SymbolKind.LOOP, self._loops[-1].name)
            is_masked = any(each is own or each.kind is SymbolKind.CONTENT for each in asked)
            is_chosen = is_masked or one.name in self._extrema.values()
            if is_chosen and not is_known and one.block != inner.header and one.type != "i1":
                counts[make_operation(OperationKind.SELECT, *number_of(one.type))] += 1
        elif isinstance(value, Opaque) or not is_known or is_float(one.type):
            count_instruction(one, self._module, counts)
        return counts

    # What waits for what

    def _find_chain(self, inner: Loop) -> tuple[str, ...]:
        phis = [one for one in self._flow.blocks[inner.header] if one.opcode == "phi"]
        # Operations since a value of the iteration before, by the results that wait for one.
        chains: dict[str, tuple[str, ...]]
        chains = {one.name: () for one in phis if one.name != self._counter}

        def find(values: Iterable[str]) -> tuple[str, ...] | None:
            known = [chains[root] for root in map(self._root, values) if root in chains]
            return max(known, key=len, default=None)

        stored = {element for element, _ in self._stored}
        for label in self._guards:
            for one in self._flow.blocks[label]:
                chain: tuple[str, ...] | None = None
                if one.name in self._loaded:
                    array, strides, offset = self._loaded[one.name]
                    chain = () if (array, strides, offset + strides[-1]) in stored else None
                elif one.name and one.opcode != "load" and one.name not in chains:
                    chain = find(value for _, value in one.operands)
                    own = self._executed.get(one.name, [])
                    if one.opcode == "phi" and own and one.name not in self._extrema.values():
                        # An operation under a mask waits for the mask only.
                        mask = find(self._flow.terminator(key).operands[0][1]
                                    for key in self._flow.find_branches(one))  # fmt: skip
                        if mask is not None:
                            chain = max(chain or (), (*mask, *own), key=len)
                    elif chain is not None:
                        chain = (*chain, *own)
                if chain is not None:
                    chains[one.name] = chain
        touched = {element for _, element in self._accesses}
        ends = [value for (array, strides, offset), value in self._stored
                if (array, strides, offset - strides[-1]) in touched]  # fmt: skip
        ends += [
            value for phi in phis
            for (_, value), label in zip(phi.operands, phi.labels, strict=True)
            if label in inner.blocks
        ]  # fmt: skip
        return find(ends) or ()
