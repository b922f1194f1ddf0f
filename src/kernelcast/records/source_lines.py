"""What each line of a kernel's source executes."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.records.operations import OperationCounts, add_weighted


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFacts:
    """A line with code of the kernel, or of a function that it calls."""

    line: int
    """Its number, from 1. What goes over several lines counts for the line where it begins."""
    parts: tuple[tuple[int, OperationCounts], ...]
    """Blocks that have code on the line, by index in `KernelFacts.blocks`, and what one execution
    of the block executes on it."""

    @property
    def once(self) -> OperationCounts:
        """What one execution of every part executes."""
        return add_weighted((counts, 1) for _, counts in self.parts)

    def executions(self, block_counts: Sequence[float]) -> float:
        """Count how often its most frequent part is executed."""
        return max(block_counts[block] for block, _ in self.parts)

    def executed(self, block_counts: Sequence[float]) -> OperationCounts:
        """Count what is executed on it, where blocks are executed that often."""
        return add_weighted(
            (counts, block_counts[block]) for block, counts in self.parts if block_counts[block]
        )
