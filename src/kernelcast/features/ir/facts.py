"""Facts about a kernel from the module that holds it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntFlag, auto
from functools import cached_property, partial, reduce
from typing import Final, TypeAlias

from kernelcast.compiling.ir import Instruction, Operand
from kernelcast.expressions import FALSE, TRUE, Condition, Expr, conjunction
from kernelcast.expressions.accesses import AccessKind, AddressPattern, LoopFacts, MemoryAccess
from kernelcast.expressions.kernel_facts import (
    ONCE,
    BlockFacts,
    BlockKind,
    ContentRead,
    CounterReach,
    Gap,
    KernelFacts,
    LocalArray,
    ParameterFacts,
)
from kernelcast.features.ir.control import LEFT, Loop
from kernelcast.features.ir.operations import (
    atomic_number,
    bits_of,
    count_instruction,
    is_atomic,
    lanes_of,
    make_operation,
    mangled_types,
    name_called,
    read_vector_access,
)
from kernelcast.features.ir.scalars import Evaluator, move_place, space_of
from kernelcast.features.ir.values import Opaque, Pointer, Value, blur, describe_test, places_of
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
    OwnElement,
    add_weighted,
)
from kernelcast.records.software_counters import LineFacts

_POINTER: Final = re.compile(r"P(?:U3AS\d+)?(?:U7_Atomic)?V?(K?)")
_LANE: Final = re.compile(r"i32 (\d+)")
_ACCESSING: Final = {"load": AccessKind.LOAD, "store": AccessKind.STORE,
                    "atomicrmw": AccessKind.ATOMIC, "cmpxchg": AccessKind.ATOMIC}  # fmt: skip
_STEPS: Final = frozenset(("add", "sub", "shl", "lshr", "ashr", "mul", "sdiv", "udiv"))
_Access: TypeAlias = tuple[AccessKind, Sequence[Operand], Value, int, int]
"""What the address is added up of, what it is, bytes and lanes."""


@dataclass(slots=True)
class _Block:
    """Blocks of the code that are executed equally often."""

    id: int
    kind: BlockKind
    parent: int | None
    counter: int
    function: str = ""
    line: int = 0
    lines: dict[int, tuple[Counter[Operation], Counter[MemoryOperation]]] = field(
        default_factory=lambda: defaultdict(lambda: (Counter(), Counter()))
    )
    """What is executed, by line of the source; 0 for included files."""
    at: int = 0
    """The line at work."""


class FactsReader:
    def __init__(self, code: Evaluator, source: str) -> None:
        self.code = code
        self.counters: dict[str, int] = {}
        """By the block of the code that is executed as often."""
        self.touches: list[tuple[Instruction, Operand, int]] = []
        """What touches memory that other work-items see, its address, and its site in the facts."""
        self._flow, self._notes = code.flow, code.notes
        self._module, self._function = code.module, code.function
        self._lines = source.splitlines()
        self._blocks: list[_Block] = []
        self._guard: Condition = TRUE
        self._loops: tuple[LoopFacts, ...] = ()
        self._block_of: dict[str, _Block] = {}
        self._accesses: list[MemoryAccess] = []
        self._reaches: list[CounterReach] = []
        self._sites: dict[object, int] = {}
        self._times_met: Counter[object] = Counter()
        self._gaps: list[Gap] = []
        self._counts: dict[object, OperationCounts] = {}
        self._forms = Forms(code)
        self._form_of: dict[int, Form] = {}
        # What is part of others: indices that are widened, signs of what is subtracted.
        self._parts = frozenset(
            one.name for one in code.flow.list_instructions()
            if (one.opcode == "fneg" and all(
                user.detail.startswith("llvm.fmuladd") for user in code.flow.users[one.name]))
            or (one.opcode in ("sext", "zext") and one.type == "i64" and all(
                user.opcode == "getelementptr" for user in code.flow.users[one.name]))
        )  # fmt: skip

    def read(self, gaps: tuple[Gap, ...] = ()) -> KernelFacts:
        """Read all of it; `gaps` are known to be missing."""
        flow, code = self._flow, self.code
        self._read_blocks()
        if flow.is_irreducible:
            self._gaps.append(Gap(line=0, reason="goto: what follows is not followed exactly"))
        narrowed = find_narrowed(self._form_of, (one.site for one in self._accesses if one.loops))
        parts: dict[int, list[tuple[int, OperationCounts]]] = defaultdict(list)
        blocks: list[BlockFacts] = []
        for block in self._blocks:
            own = {line: self._share(*counts) for line, counts in block.lines.items()}
            total = add_weighted((counts, 1) for counts in own.values())
            blocks.append(BlockFacts(
                id=block.id, function=block.function or self._function.name, kind=block.kind,
                line=block.line, parent=block.parent, counter=block.counter,
                operations=self._share(total.operations, total.memory),
            ))  # fmt: skip
            for line, counts in own.items():
                if line and (counts.operations or counts.memory):
                    parts[line].append((block.id, counts))
        named = {name for value in flow.users for name in re.findall(r"@[\w.$]+", value)}
        loops = tuple(
            code.loop_facts(flow.loop_at[label]) for label in flow.order
            if label in flow.loop_at and label in self._block_of
        )  # fmt: skip
        return KernelFacts(
            kernel=self._function.name,
            line=int(self._notes.fields(self._function.notes.get("dbg", -1)).get("line", 0)),
            parameters=tuple(self._list_parameters()),
            local_arrays=tuple(
                LocalArray(name=code.name_global(name), bytes=self._module.size_of(one.type))
                for name, one in self._module.globals.items() if name in named and one.space == 3
            ),
            blocks=tuple(blocks), reaches=tuple(self._reaches),
            accesses=tuple(
                replace(one, is_narrowed=True) if one.site in narrowed else one
                for one in self._accesses
            ),
            loops=loops,
            lines=tuple(LineFacts(line=one, parts=tuple(parts[one])) for one in sorted(parts)),
            gaps=tuple(dict.fromkeys((*self._gaps, *gaps))),
            contents=self._find_used_contents(loops),
            required_local_size=self._module.required_local_size(self._function),
            fields=tuple(code.fields.values()),
        )  # fmt: skip

    def _share(
        self, operations: Mapping[Operation, float], memory: Mapping[MemoryOperation, float]
    ) -> OperationCounts:
        """Make one object for equal counts: most blocks execute what others execute as well, and
        kept facts of thousands of blocks are read in half the time."""
        key = tuple(operations.items()), tuple(memory.items())
        if key not in self._counts:
            counts = OperationCounts(operations=dict(operations), memory=dict(memory))
            self._counts[key] = counts
        return self._counts[key]

    def _read_blocks(self) -> None:
        flow, code = self._flow, self.code
        groups: dict[object, _Block] = {}
        for label in flow.order:
            guard = self._guard = code.guard(label)
            if guard == FALSE:
                continue
            around, terms = flow.loops_around(label), flow.terms[label]
            insides = [*(one.header for one in around[1:]), label]
            loops = self._loops = tuple(
                facts if loop.testing.isdisjoint((label, inside)) else describe_test(facts)
                for loop, inside in zip(around, insides, strict=False)
                for facts in (code.loop_facts(loop),)
            )
            if any(one.trip_count == Expr.constant(0) and one.is_exact for one in loops):
                continue
            loop = flow.loop_of[label]
            own = label if terms is None else frozenset(frozenset(one.items()) for one in terms)
            key = loop and loop.header, loop is not None and label in loop.testing, own
            if key not in groups:
                # It only jumps on, and nothing is reached by way of it alone.
                if (
                    label != flow.entry
                    and label not in flow.dominating
                    and all(
                        one.opcode == "phi"
                        or (one.opcode == "br" and not one.operands)
                        or (one.opcode == "call" and one.detail.startswith("llvm.lifetime"))
                        for one in flow.blocks[label]
                    )
                ):
                    continue
                counter = ONCE
                if label != flow.entry and (guard != TRUE or loops):
                    counter = self.counters[label] = len(self.counters)
                    self._reaches.append(CounterReach(guard=guard, loops=loops))
                kind, parent = self._place(label, loop)
                groups[key] = _Block(
                    id=len(self._blocks), kind=kind, parent=parent, counter=counter
                )
                self._blocks.append(groups[key])
            step = block = self._block_of[label] = groups[key]
            steps = self._find_steps(label, loop) if loop else frozenset()
            for one in flow.blocks[label]:
                if loop and one.name in steps and step is block:
                    bodies = [self._block_of[each].id for each in flow.successors[loop.test]
                              if each in loop.blocks and each in self._block_of]  # fmt: skip
                    step = _Block(
                        id=len(self._blocks), function=block.function, kind=BlockKind.LOOP_STEP,
                        parent=bodies[0] if bodies else block.id, counter=block.counter,
                    )  # fmt: skip
                    self._blocks.append(step)
                self._read_instruction(one, step if one.name in steps else block)

    def _find_steps(self, label: str, loop: Loop) -> frozenset[str]:
        """Find what only counts a loop's iterations."""
        if not loop.test or label not in loop.latches:
            return frozenset()
        again = {
            (phi.operands[phi.labels.index(label)][1], phi.name)
            for phi in self._flow.blocks[loop.header]
            if phi.opcode == "phi" and label in phi.labels
        }
        return frozenset(
            one.name for one in self._flow.blocks[label]
            if one.opcode in _STEPS and any((one.name, each) in again for _, each in one.operands)
        )  # fmt: skip

    def _place(self, label: str, loop: Loop | None) -> tuple[BlockKind, int | None]:
        """Find how a block comes to be executed, as its source has it, and within which one."""
        flow = self._flow
        if label == flow.entry:
            return BlockKind.ENTRY, None
        terms, is_test = flow.terms[label], loop is not None and label in loop.testing
        is_part = is_test or (loop is not None and terms == [{}])
        # A loop's parts belong to the block that the loop stands in.
        around = flow.dominators[loop.header if loop is not None and is_part else label]
        while around not in self._block_of and around != flow.entry:
            around = flow.dominators[around]
        parent = self._block_of[around].id if around in self._block_of else None
        if is_part:
            return BlockKind.LOOP_CONDITION if is_test else BlockKind.LOOP_BODY, parent
        above = flow.terms[flow.dominators[label]]
        if terms is None or len(terms) != 1 or above is None or len(above) != 1:
            return BlockKind.AFTER, parent
        new = [(key, edges) for key, edges in terms[0].items() if above[0].get(key) != edges]
        if len(new) != 1 or new[0][0].startswith(LEFT):
            return BlockKind.AFTER, parent
        key, edges = new[0]
        if flow.terminator(key).opcode == "switch":
            return BlockKind.CASE, parent
        side = self._block_of.get(flow.successors[key][0])
        has_then = side is not None and side.kind is BlockKind.THEN
        return BlockKind.ELSE if 0 not in edges and has_then else BlockKind.THEN, parent

    # Instructions

    def _read_instruction(self, one: Instruction, block: _Block) -> None:
        place = self._notes.place(one.note)
        if place is not None and (place.line or not place.is_main):
            block.at = place.line
        if place is not None and place.line:
            kernel = self._function.name
            if not block.function or (block.function != kernel == place.function):
                block.function, block.line = place.function, 0
            while place is not None and place.function != block.function:
                place = self._notes.place(place.at) if place.at else None
            line = place.line if place is not None else 0
            block.line = min(block.line or line, line)
        operations = block.lines[block.at][0]
        if one.opcode == "getelementptr":
            base = one.operands[0][1]
            if self.code.roots(base):
                operations[self._describe_own_address(one)] += 1
            elif base.startswith(("%", "@")):
                count_instruction(one, self._module, operations)
            return
        if one.name not in self._parts:
            count_instruction(one, self._module, operations)
        accesses = [*self._list_accesses(one)]
        for access in accesses:
            self._record(one, block, *access)
        if one.opcode != "call" or accesses or one.detail.startswith("llvm."):
            return
        # What a function may do that is not described.
        pointers = [each for each in one.operands if each[0].startswith("ptr")]
        name, line = name_called(one), self.code.line_of(one)
        function = self._module.functions.get(one.detail)
        if function is not None:
            is_recursive = any(f"@{one.detail}(" in each for each in function.lines)
            reason = (
                "calls itself: OpenCL C forbids it" if is_recursive
                else "is not looked into: inlined, it would make the kernel too long"
            )  # fmt: skip
            self._gaps.append(Gap(line=line, reason=f"{name} {reason}"))
        elif "printf" not in one.detail and any(
            # A builtin like `modf` may write to memory that other work-items see.
            not isinstance(each, Pointer)
            or each.memory.space not in (MemorySpace.PRIVATE, MemorySpace.CONSTANT)
            for pointer, const in zip(pointers, _POINTER.findall(mangled_types(one)), strict=False)
            if not const
            for _, each in places_of(self.code.operand(pointer, one.block))
        ):
            self._gaps.append(Gap(line=line, reason=f"the memory that {name} writes is not "
                                                    "described"))  # fmt: skip

    def _describe_own_address(self, one: Instruction) -> Operation:
        place = self.code.value(one.name)
        offset = place.offset if isinstance(place, Pointer) else place
        steady = {loop.name for loop in self._loops if loop.trip_count is not None}
        name = ""
        if not isinstance(offset, Expr) or any(
            not each.is_parameter and each.name not in steady for each in offset.symbols()
        ):
            used = {user.opcode for user in self._flow.users[one.name]}
            name = (
                OwnElement.UPDATE if {"load", "store"} <= used
                else OwnElement.STORE if "store" in used else OwnElement.LOAD
            ).value  # fmt: skip
        return make_operation(OperationKind.ADDRESS, NumberClass.NONE, 0, 1, name)

    def _list_accesses(self, one: Instruction) -> Iterator[_Access]:
        operands, kind = one.operands, _ACCESSING.get(one.opcode)
        find = partial(self.code.operand, block=one.block)
        if kind is not None:
            address, size = operands[one.opcode == "store"], self._module.size_of(one.type)
            yield kind, (address,), find(address), size, self._count_lanes(one)
        if one.opcode != "call":
            return
        access = read_vector_access(one, self._module)
        pointers = [each for each in operands if each[0].startswith("ptr")]
        if access is not None:
            place = move_place(find(access.pointer), find(access.index), access.stride)
            kind = AccessKind.STORE if access.is_store else AccessKind.LOAD
            yield kind, (access.pointer, access.index), place, access.bytes, access.lanes
        elif is_atomic(name_called(one)) and pointers:
            size = atomic_number(one)[1] // 8
            yield AccessKind.ATOMIC, pointers[:1], find(pointers[0]), size, 1
        elif one.detail.startswith(("llvm.memcpy", "llvm.memmove")):  # of a structure
            length, own = operands[2][1], self.code.roots(operands[0][1])
            if not length.isdigit() or any(f"*{one}" not in self.code.takers for one in own):
                return
            for operand, kind in ((operands[1], AccessKind.LOAD), (operands[0], AccessKind.STORE)):
                place = find(operand)
                is_own = any(isinstance(each, Pointer) and each.memory.space is MemorySpace.PRIVATE
                             for _, each in places_of(place))  # fmt: skip
                if not is_own and not operand[1].startswith("@__const"):  # an initial value
                    yield kind, (operand,), place, int(length), 1

    def _count_lanes(self, one: Instruction) -> int:
        """Count the lanes of a vector that are used, or set."""
        lanes = lanes_of(one.type)
        if lanes == 1:
            return 1
        if one.opcode == "store":
            instructions, count = self.code.instructions, 0
            value = instructions.get(one.operands[0][1])
            if value is not None and value.opcode == "shufflevector":
                return min(lanes, len(_LANE.findall(value.operands[2][1]))) or lanes
            while value is not None and value.opcode == "insertelement":
                count += 1
                value = instructions.get(value.operands[0][1])
            is_update = value is not None and value.opcode == "load" and count < lanes
            return count if is_update else lanes
        used: set[str] = set()
        for user in self._flow.users[one.name]:
            if user.opcode == "extractelement" and user.operands[1][1].isdigit():
                used.add(user.operands[1][1])
            elif user.opcode == "shufflevector" and user.operands[0][1] == one.name:
                used.update(_LANE.findall(user.operands[2][1]))
            elif user.opcode != "insertelement" or user.operands[0][1] != one.name:
                return lanes
        return len(used & {str(lane) for lane in range(lanes)}) or lanes

    def _record(
        self, one: Instruction, block: _Block, kind: AccessKind, operands: Sequence[Operand],
        place: Value, size: int, lanes: int,
    ) -> None:  # fmt: skip
        places = [
            (conditions, each.memory, each.offset) if isinstance(each, Pointer)
            else (conditions, None, each) for conditions, each in places_of(place)
        ]  # fmt: skip
        if any(memory is not None and memory.is_given for _, memory, _ in places):
            return  # an argument, or what a variable is set to at first
        spaces = [space_of(operands[0][0]) if one is None else one.space for _, one, _ in places]
        if kind is not AccessKind.ATOMIC:
            is_store = kind is AccessKind.STORE
            moved = MemoryOperation(space=spaces[0], is_store=is_store, bytes=size)
            block.lines[block.at][1][moved] += 1
        address = self.code.instructions.get(operands[0][1])
        is_indexed = address is not None and address.opcode == "getelementptr"
        notes = (address.note,) if address and is_indexed and one.opcode != "call" else ()
        where, text = self._notes.read_object(self._lines, *notes, one.note)
        key: object = id(one)
        if where is not None and where.line:
            written = (where.line, where.column, where.function, kind, size)
            # A macro may hold several; a function has each once wherever it is inlined.
            number = self._times_met[written, where.at]
            self._times_met[written, where.at] += 1
            key = (written, number)
        if key not in self._sites:
            self._sites[key] = len(self._sites)
        site = self._sites[key]
        if kind is not AccessKind.ATOMIC and MemorySpace.PRIVATE not in spaces:
            self._form_of[site] = self._forms.combine(operands)
        if any(space is not MemorySpace.PRIVATE for space in spaces):
            self.touches.append((one, operands[0], site))
        for (conditions, memory, offset), space in zip(places, spaces, strict=True):
            whole = conjunction(self._guard, *conditions)
            if space is MemorySpace.PRIVATE or whole == FALSE:
                continue
            known = offset if isinstance(offset, Expr) and memory is not None else None
            blurred = offset if isinstance(offset, Opaque) else blur(offset)
            reason = ""
            if known is not None:
                is_affine = known.is_quasi_affine()
                pattern = AddressPattern.QUASI_AFFINE if is_affine else AddressPattern.POLYNOMIAL
            elif blurred.sources:
                pattern = AddressPattern.INDIRECT
            else:
                pattern = AddressPattern.UNKNOWN
                reason = blurred.reason or "a pointer that is not followed"
            self._accesses.append(MemoryAccess(
                site=site, block=block.id, line=self.code.line_of(one), text=text, kind=kind,
                space=space, buffer=None if memory is None else memory.name, bytes=size,
                lanes=lanes, offset_bytes=known, pattern=pattern, guard=whole, loops=self._loops,
                sources=tuple(sorted(blurred.sources)), reason=reason,
            ))  # fmt: skip

    # Parameters and the rest

    def _list_parameters(self) -> Iterator[ParameterFacts]:
        by_value = self._function.by_value
        for (kind, name), is_copy in zip(self._function.parameters, by_value, strict=True):
            note = self.code.type_of(name)
            is_pointer = kind.startswith("ptr") and not is_copy
            target = self._notes.type_of(note.target) if note.target is not None else note
            own = [one.kind for one in self._accesses if one.buffer in (name[1:], None)]
            yield ParameterFacts(
                name=name[1:], type_name=note.name, is_pointer=is_pointer,
                space=space_of(kind) if is_pointer else MemorySpace.PRIVATE,
                is_const=target.is_const, is_restrict=note.is_restrict,
                is_volatile=target.is_volatile,
                element_bytes=-(-target.bits // 8) if is_pointer or note.bits else 0,
                is_read=is_pointer and any(one is not AccessKind.STORE for one in own),
                is_written=is_pointer and any(one is not AccessKind.LOAD for one in own),
            )  # fmt: skip

    def _find_used_contents(self, loops: Sequence[LoopFacts]) -> tuple[ContentRead, ...]:
        """Give the contents that tell iterations or conditions, and those that place them."""
        contents = self.code.contents
        counts = [one.trip_count for one in loops if one.is_exact]
        guards = [one.guard for one in self._reaches if one.guard.is_exact]
        waiting = [one.symbols() for one in (*counts, *guards) if one is not None]
        used: set[str] = set()
        while waiting:
            names = {one.name for one in waiting.pop()} & contents.keys() - used
            used |= names
            waiting.extend(contents[name].offset_bytes.symbols() for name in names)
        return tuple(one for name, one in contents.items() if name in used)


# Ids have 64 bits, and so have addresses. Between them indices are often `int` or `uint`, and what
# is cut down to 32 bits and widened again may wrap: Intel's compiler then no longer knows that the
# next work-item's address is the next one, and gathers. A sum of `int` with another number of 32
# bits must not wrap, and is followed, unless a loop's counter takes that number away from it: it is
# widened on its own. Seen in the machine code of small kernels (with version 0.2).
class Form(IntFlag):
    """What an address is made of: none of these if only of constants."""

    LOCAL_ID = auto()
    GLOBAL_ID = auto()
    MIXED = auto()  # more than constants were added
    NUMBER = auto()  # it holds a number that has 32 bits by itself
    COUNTER = auto()  # it changes in a loop that is not written out
    # How the first id reaches it: the greatest counts, so forms are compared with these.
    WHOLE = auto()  # with all its bits
    SUM = auto()  # cut, and added to another number of 32 bits
    CUT = auto()  # cut, but for constants that are added
    LOST = auto()  # without a sign, or cut after sums of 64 bits


_NONE: Final = Form(0)
_IDS: Final = {"get_global_id": Form.GLOBAL_ID, "get_local_id": Form.LOCAL_ID}
_ORDERS: Final = ("slt", "sgt", "sle", "sge", "ult", "ugt", "ule", "uge")
_SUMS: Final = ("add", "sub")


def find_narrowed(forms: Mapping[int, Form], looping: Iterable[int]) -> frozenset[int]:
    """Give the sites whose addresses compilers do not see side by side."""
    whole = 0
    for form in forms.values():
        if Form.WHOLE <= form < Form.SUM or (form >= Form.CUT and not form & Form.COUNTER):
            whole |= form & (Form.LOCAL_ID | Form.GLOBAL_ID)
    inside = frozenset(looping)
    return frozenset(
        site for site, form in forms.items()
        if form >= Form.CUT
        # Where an id is needed whole as well, sums of its lower half are no longer followed.
        or (form >= Form.SUM and form & whole and (form & Form.COUNTER or site not in inside))
    )  # fmt: skip


class Forms:
    def __init__(self, code: Evaluator) -> None:
        self._code = code
        self._known: dict[str, Form] = {}

    def combine(self, operands: Iterable[Operand]) -> Form:
        return reduce(_add, map(self._of, operands), _NONE)

    def _of(self, operand: Operand) -> Form:
        kind, value = operand
        if not value.startswith("%"):
            return _NONE
        instruction = self._code.instructions.get(value)
        if instruction is None:
            return Form.NUMBER if bits_of(kind) else _NONE
        if value not in self._known:
            self._known[value] = _NONE  # what it is set to may be made of itself
            form = self._find(instruction)
            is_kept = (
                Form.CUT <= form < Form.LOST and instruction.type == "i64"
                and instruction.opcode in ("sext", "mul", *_SUMS)
                and len(self._code.flow.users[value]) > 1 and not self._has_lower_bounds
            )  # fmt: skip
            self._known[value] = _reach(form, Form.WHOLE) if is_kept else form
        return self._known[value]

    @cached_property
    def _has_lower_bounds(self) -> bool:
        """Whether cut ids are compared with constants: what is not negative has no sign to keep."""
        return any(
            one.opcode == "icmp" and one.detail in _ORDERS
            and any(not value.startswith("%") for _, value in one.operands)
            and any(Form.CUT <= self._known.get(value, 0) < Form.LOST for _, value in one.operands)
            for one in self._code.flow.list_instructions()
        )  # fmt: skip

    def _find(self, one: Instruction) -> Form:
        if one.opcode == "call":
            name = name_called(one)
            if name in _IDS and one.operands[0][1] == "0":
                return Form.WHOLE | _IDS[name]
            return Form.MIXED if name.startswith("get_") else self.combine(one.operands)
        if one.opcode in ("load", "atomicrmw", "cmpxchg"):
            return Form.NUMBER
        if one.opcode == "getelementptr":
            found = self._of(one.operands[0])
            for place, operand in enumerate(one.operands[1:]):
                index = self._of(operand)
                # The size of an array that is declared bounds its index.
                if place and Form.CUT <= index < Form.LOST and not index & Form.MIXED:
                    index = _reach(index, _NONE)
                found = _add(found, index)
            return found
        if one.opcode == "phi":
            form, loop = self.combine(one.operands), self._code.flow.loop_of.get(one.block)
            if loop is None or loop.header != one.block:
                return form
            if form < Form.WHOLE:
                count = self._code.loop_facts(loop).trip_count
                is_written_out = count is not None and count.constant_value is not None
                return form & ~Form.COUNTER if is_written_out else form | Form.COUNTER
            is_cut = Form.CUT <= form < Form.LOST and bits_of(one.type)
            return _reach(form, Form.SUM) if is_cut else form
        if one.opcode == "select":
            return self.combine(one.operands[1:])
        if one.opcode in ("trunc", "zext") and bits_of(one.type) and (
            bits_of(one.operands[0][0]) > 1
        ):  # fmt: skip
            form = self._of(one.operands[0])
            if form < Form.WHOLE:
                return form
            is_cut = one.opcode == "trunc" and form < Form.SUM and not form & Form.MIXED
            return _reach(form, Form.CUT if is_cut else Form.LOST)
        if len(one.operands) == 2 and bits_of(one.type):
            return self._calculate(one)
        return self.combine(one.operands)

    def _calculate(self, one: Instruction) -> Form:
        forms = map(self._of, one.operands)
        left, right = sorted(forms, key=lambda form: form.bit_length() * (form >= Form.WHOLE),
                             reverse=True)  # fmt: skip
        is_sum = one.opcode in _SUMS
        if is_sum and not right:
            return left
        both = left | right | Form.MIXED
        numbers = [int(value) for _, value in one.operands if value.lstrip("-").isdigit()]
        is_shift = one.opcode == "shl" or (
            one.opcode == "mul" and any(each > 0 and not each & (each - 1) for each in numbers)
        )
        if both < Form.WHOLE and not is_sum and is_shift:
            return both | Form.NUMBER  # what is shifted does not meet what is added
        if bits_of(one.type) != 32 or not Form.WHOLE <= both < Form.LOST:
            return both
        if "nsw" not in one.flags and one.opcode in (*_SUMS, "mul"):
            return _reach(both, Form.LOST)
        if both >= Form.CUT and right and not right & Form.COUNTER:
            return _reach(both, Form.SUM if right & Form.NUMBER else Form.LOST)
        return both


def _add(one: Form, two: Form) -> Form:
    return one | two | (Form.MIXED if one and two else _NONE)


def _reach(form: Form, way: Form) -> Form:
    """Give the form of what the first id reaches in another way."""
    return Form(form % Form.WHOLE) | way
