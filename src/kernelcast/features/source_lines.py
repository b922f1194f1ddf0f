"""Splits the operations of blocks by the lines of the source."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from kernelcast.features.analysis import Analysis
from kernelcast.features.blocks.expressions import ExpressionCounter
from kernelcast.features.blocks.model import Block, BlockKind, BlockList, LinearCount, Site
from kernelcast.features.blocks.statements import StatementWalker
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.records.operations import MemoryOperation, MemorySpace, Operation, OperationCounts
from kernelcast.records.source_lines import LineFacts

_Place = tuple[int, int]
"""Line and block."""


def split_by_line(analysis: Analysis) -> tuple[LineFacts, ...]:
    """Say what each line of a kernel's source executes.

    Returns
    -------
    tuple of LineFacts
        Lines with code, in order. Blocks have the indices that they have in the analysis.
    """
    notes = _Notes()
    entries = [one for one in analysis.blocks.blocks if one.kind is BlockKind.ENTRY]
    for entry in entries:
        function = analysis.tree.function_named(entry.function)
        if function is not None:
            _LineWalker(analysis.tree, notes, function).walk(entry.count)
    spaces = {access.site: access.space for access in analysis.facts.accesses}
    return notes.lines(spaces)


class _Notes(BlockList):
    """A list of blocks that also notes which line everything is on."""

    def __init__(self) -> None:
        super().__init__()
        self.line = 0
        self.operations: defaultdict[_Place, Counter[Operation]] = defaultdict(Counter)
        self.sites_at: defaultdict[_Place, list[Site]] = defaultdict(list)
        self.places: set[_Place] = set()

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """Count what is added in the block for the line of a node; included files have none."""
        outer = self.line
        self.line = node.line or outer
        yield
        self.line = outer

    def new_block(
        self, function: str, kind: BlockKind, count: LinearCount, node: Node, parent: Block | None
    ) -> Block:
        block = super().new_block(function, kind, count, node, parent)
        block.operations = _NotedCounter(self, block.id)
        return block

    def add_site(self, block: Block, site: Site) -> None:
        super().add_site(block, site)
        place = (site.node.line or self.line, block.id)
        self.sites_at[place].append(site)

    def lines(self, spaces: dict[int, MemorySpace]) -> tuple[LineFacts, ...]:
        """Give what was noted; `spaces` are those that generic pointers were found to have."""
        self._place_jumps()
        by_line: defaultdict[int, list[tuple[int, OperationCounts]]] = defaultdict(list)
        for line, block in sorted({*self.places, *self.operations, *self.sites_at}):
            counts = OperationCounts(
                operations=dict(self.operations[line, block]),
                memory=_count_sites(self.sites_at[line, block], spaces),
            )
            if line:
                by_line[line].append((block, counts))
        return tuple(
            LineFacts(line=line, parts=tuple(parts)) for line, parts in sorted(by_line.items())
        )

    def _place_jumps(self) -> None:
        """Give the jumps of returns, counted at the function's end, to the block's last line."""
        last = {block: line for line, block in sorted({*self.places, *self.operations})}
        for line, block in [one for one in self.operations if not one[0]]:
            jumps = self.operations.pop((line, block))
            self.operations[last[block] or self.blocks[block].line, block] += jumps


class _NotedCounter(Counter[Operation]):
    """Operations of a block; what is added is noted for the line at work."""

    def __init__(self, notes: _Notes, block: int) -> None:
        super().__init__()
        self._notes = notes
        self._block = block

    def __setitem__(self, operation: Operation, times: int) -> None:
        added = times - self[operation]
        self._notes.operations[self._notes.line, self._block][operation] += added
        super().__setitem__(operation, times)


class _LineCounter(ExpressionCounter):
    """Counts expressions line by line."""

    def __init__(self, tree: SyntaxTree, notes: _Notes, function: Node) -> None:
        super().__init__(tree, notes, function)
        self._notes = notes

    def value(self, node: Node, block: Block) -> None:
        with self._notes.at(node):
            super().value(node, block)

    def condition(self, node: Node, block: Block) -> None:
        with self._notes.at(node):
            super().condition(node, block)

    def loop_condition(self, node: Node, block: Block) -> None:
        with self._notes.at(node):
            super().loop_condition(node, block)


class _LineWalker(StatementWalker):
    """Walks statements line by line."""

    def __init__(self, tree: SyntaxTree, notes: _Notes, function: Node) -> None:
        super().__init__(tree, notes, function)
        self._notes = notes
        self._expressions = _LineCounter(tree, notes, function)

    def _statement(self, node: Node, block: Block) -> Block:
        with self._notes.at(node):
            if node.line and _is_executed(node):
                self._notes.places.add((node.line, block.id))
            return super()._statement(node, block)


def _is_executed(node: Node) -> bool:
    """Tell whether a statement is more than braces or memory set aside."""
    if node.kind == kinds.DECLARATION:
        return any(one.children and one.type.space != "local" for one in node.children)
    return node.kind not in (kinds.COMPOUND, kinds.EMPTY)


def _count_sites(sites: list[Site], spaces: dict[int, MemorySpace]) -> dict[MemoryOperation, float]:
    found: Counter[MemoryOperation] = Counter()
    for site in sites:
        if not site.is_atomic:
            space = spaces.get(site.id, MemorySpace(site.space))
            found[MemoryOperation(space=space, is_store=site.is_store, bytes=site.bytes)] += 1
    return dict(found)
