"""A kernel that exists as accesses and counts of operations only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelcast.expressions import TRUE
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.kernel_facts import (
    ONCE,
    BlockFacts,
    BlockKind,
    CounterReach,
    KernelFacts,
    LocalArray,
    ParameterFacts,
)
from kernelcast.features.written_accesses.arrays import WrittenArray
from kernelcast.records.errors import InputError
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)

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
    """A kernel as somebody wrote down what it touches.

    Raises
    ------
    InputError
        If nothing is accessed, an array is declared twice, or an operation is not known.
    """

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
