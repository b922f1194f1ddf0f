"""What work-items go through on a device that masks their lanes and never jumps."""

from kernelcast.expressions.kernel_facts import ONCE, BlockFacts, BlockKind, KernelFacts
from kernelcast.records.operations import OperationCounts, OperationKind, add_weighted
from kernelcast.records.software_counters import SoftwareCounters

_REPEATED = (BlockKind.LOOP_BODY, BlockKind.LOOP_STEP, BlockKind.LOOP_CONDITION)


def count_unjumped(facts: KernelFacts, counters: SoftwareCounters) -> OperationCounts:
    """Count what a work-item goes through if both sides of every condition are gone through.

    Loops are gone through once at least. Stores and atomics are those executed: lanes that are
    masked out do not touch memory.

    Returns
    -------
    OperationCounts
        Mean per work-item.
    """
    times = _Times(facts.blocks, counters.block_counts)
    found = add_weighted((one.operations, times.of(one)) for one in facts.blocks)
    executed = counters.executed
    return OperationCounts(
        operations={
            one: executed.operations.get(one, 0.0) if one.kind is OperationKind.ATOMIC else count
            for one, count in found.operations.items()
        },
        memory={
            one: executed.memory.get(one, 0.0) if one.is_store else count
            for one, count in found.memory.items()
        },
    )


class _Times:
    """How often blocks are gone through."""

    def __init__(self, blocks: tuple[BlockFacts, ...], executed: tuple[float, ...]) -> None:
        self._blocks = blocks
        self._executed = executed
        self._known: dict[int, float] = {}
        self._counted = {one.count: one for one in reversed(blocks) if one.kind != BlockKind.ENTRY}

    def of(self, block: BlockFacts) -> float:
        """Give the times of a block."""
        if block.id not in self._known:
            self._known[block.id] = self._find(block)
        return self._known[block.id]

    def _find(self, block: BlockFacts) -> float:
        if block.parent is None:  # a function: as often as the blocks that call it
            return sum(
                factor * self._read(counter) for counter, factor in block.count if factor > 0
            )
        around = self._blocks[block.parent]
        times = self.of(around)
        if block.kind not in _REPEATED:
            return times
        idle = times - self._executed[around.id]
        return max(times, self._executed[block.id] + idle)

    def _read(self, counter: int) -> float:
        if counter == ONCE:
            return 1.0
        counted = self._counted.get(((counter, 1),))
        return 0.0 if counted is None else self.of(counted)
