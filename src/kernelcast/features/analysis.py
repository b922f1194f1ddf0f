"""Everything the source of a kernel tells: the front door of static analysis."""

import atexit
import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.kernel_facts import (
    BlockFacts,
    ContentRead,
    Gap,
    KernelFacts,
    LocalArray,
    ParameterFacts,
)  # fmt: skip
from kernelcast.features.addresses.state import Findings
from kernelcast.features.addresses.walk import AddressWalk
from kernelcast.features.addresses.widening import find_narrowed
from kernelcast.features.blocks.model import Block, BlockList
from kernelcast.features.blocks.statements import divide
from kernelcast.features.interpreter import paused_collector, run_deep
from kernelcast.features.parsing import MAIN_FILE, ParsedSource, list_kernels, parse_source
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.features.syntax.types import TypeClass
from kernelcast.records.errors import InputError, KernelNotFoundError
from kernelcast.records.kernel import Kernel
from kernelcast.records.operations import MemoryOperation, MemorySpace, OperationCounts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analysis:
    """The facts about a kernel, with the syntax tree they were read from."""

    facts: KernelFacts
    """What is passed on to other rooms."""
    tree: SyntaxTree
    """The unit."""
    function: Node
    """The kernel's definition."""
    blocks: BlockList
    """Places of the counters and of the memory operations."""


@lru_cache(maxsize=64)
def analyse(kernel: Kernel) -> Analysis:
    """Analyse a kernel's source.

    Returns
    -------
    Analysis
        Partial where the source has errors or constructs that are not followed; `facts.gaps`
        says which.

    Raises
    ------
    CompileError
        If the text is nothing that libclang takes for a source.
    KernelNotFoundError
        If it defines no kernel of that name.
    """
    parsed = _parse(kernel)
    return analyse_parsed(parsed, kernel.name, source_name=kernel.source_name)


def _parse(kernel: Kernel) -> ParsedSource:
    return parse_source(
        kernel.source, kernel.build_options, source_name=kernel.source_name, dialect=kernel.dialect
    )


@lru_cache(maxsize=64)
def read_facts(kernel: Kernel) -> KernelFacts:
    """Give the facts about a kernel and forget its syntax tree.

    For many kernels one after the other: a process that keeps dozens of trees spends a sixth of
    its time on searching them for garbage.

    Returns
    -------
    KernelFacts
        Those of `analyse`.

    Raises
    ------
    CompileError, KernelNotFoundError
        As `analyse`.
    """
    with paused_collector():  # until the tree is gone again
        parsed = _parse(kernel)
        return _analyse_tree(parsed, kernel.name, kernel.source_name, _make_tree).facts


@lru_cache(maxsize=64)
def read_facts_with(kernel: Kernel, known_buffers: frozenset[str]) -> KernelFacts:
    """Give the facts about a kernel whose loops and conditions may ask what buffers hold.

    Parameters
    ----------
    known_buffers : frozenset of str
        Parameters whose contents are known and that the kernel does not write.

    Returns
    -------
    KernelFacts
        As of `analyse`, with `contents`.

    Raises
    ------
    CompileError, KernelNotFoundError
        As `analyse`.
    """
    with paused_collector():
        parsed = _parse(kernel)
        return _analyse_tree(
            parsed, kernel.name, kernel.source_name, _make_tree, known_buffers
        ).facts


def analyse_parsed(parsed: ParsedSource, name: str, *, source_name: str = "<source>") -> Analysis:
    """Analyse one kernel of a source that is parsed already.

    Raises
    ------
    KernelNotFoundError
        If it defines no kernel of that name.
    InputError
        If it nests too deeply.
    """
    return _analyse_tree(parsed, name, source_name, _read_tree)


def _analyse_tree(
    parsed: ParsedSource,
    name: str,
    source_name: str,
    read: Callable[[ParsedSource], SyntaxTree],
    known_buffers: frozenset[str] = frozenset(),
) -> Analysis:
    def analyse_as(tree: SyntaxTree) -> Analysis:
        return _analyse(tree, parsed, (name, source_name), known_buffers)

    try:
        return analyse_as(read(parsed))
    except (RecursionError, ctypes.ArgumentError):
        pass  # ctypes wraps a recursion that ends within a callback
    try:
        return run_deep(lambda: analyse_as(_make_tree(parsed)))
    except (RecursionError, ctypes.ArgumentError) as error:
        msg = f"{source_name}: kernel {name!r} nests too deeply to be analysed; nest less deeply"
        raise InputError(msg) from error


def _analyse(
    tree: SyntaxTree, parsed: ParsedSource, names: tuple[str, str], known_buffers: frozenset[str]
) -> Analysis:
    name, source_name = names
    function = tree.function_named(name)
    if function is None:
        have = ", ".join(list_kernels(parsed)) or "none"
        msg = f"kernel {name!r} is not in {source_name}; its kernels are: {have}"
        raise KernelNotFoundError(msg)
    with paused_collector():
        blocks = divide(tree, function)
        walk = AddressWalk(tree, blocks, known_buffers)
        walk.follow(function)
        narrowed = find_narrowed(
            tree, function, blocks, {one.site for one in walk.findings.accesses if one.loops}
        )
        walk.findings.accesses = [
            replace(one, is_narrowed=True) if one.site in narrowed else one
            for one in walk.findings.accesses
        ]
        facts = _collect(parsed, function, blocks, walk.findings)
    return Analysis(facts=facts, tree=tree, function=function, blocks=blocks)


@lru_cache(maxsize=4)
def _read_tree(parsed: ParsedSource) -> SyntaxTree:
    """Read the tree once for all kernels of a source."""
    return _make_tree(parsed)


def _make_tree(parsed: ParsedSource) -> SyntaxTree:
    names = [one.name for one in parsed.placeholders if not one.type_name]
    return SyntaxTree(parsed.unit, parsed.source, MAIN_FILE, names)


def _collect(
    parsed: ParsedSource, function: Node, blocks: BlockList, findings: Findings
) -> KernelFacts:
    accesses = tuple(findings.accesses)
    spaces = {access.site: access.space for access in accesses}
    gaps = [Gap(line=line, reason=reason) for line, reason in blocks.gaps]
    gaps += [Gap(line=0, reason=one.advice) for one in parsed.placeholders]
    gaps += [Gap(line=0, reason=f"error in the source: {error}") for error in parsed.errors]
    return KernelFacts(
        kernel=function.spelling,
        line=function.line,
        parameters=tuple(
            _describe_parameter(child, accesses)
            for child in function.children
            if child.kind == kinds.PARAMETER
        ),
        local_arrays=tuple(
            LocalArray(name=one.spelling, bytes=one.type.bytes)
            for one in find_local_arrays(function)
        ),
        blocks=tuple(_describe_block(block, spaces) for block in blocks.blocks),
        counter_count=len(blocks.counters),
        reaches=tuple(findings.reaches),
        accesses=accesses,
        loops=tuple(findings.loops),
        gaps=tuple(dict.fromkeys(gaps)),
        contents=_find_used(findings),
    )


def _find_used(findings: Findings) -> tuple[ContentRead, ...]:
    """Give the contents that tell iterations or conditions exactly, and those that place them."""
    counts = [one.trip_count for one in findings.loops if one.is_exact]
    guards = [one.guard for one in findings.reaches if one.guard.is_exact]
    waiting = [one.symbols() for one in (*counts, *guards) if one is not None]
    used: set[str] = set()
    while waiting:
        names = {one.name for one in waiting.pop()} & findings.contents.keys() - used
        used |= names
        waiting.extend(findings.contents[name].offset_bytes.symbols() for name in names)
    return tuple(one for name, one in findings.contents.items() if name in used)


def _describe_parameter(node: Node, accesses: tuple[MemoryAccess, ...]) -> ParameterFacts:
    info, name = node.type, node.spelling
    target = info.target if info.type_class is TypeClass.POINTER else None
    own = [access for access in accesses if access.buffer in (name, None)]
    return ParameterFacts(
        name=name,
        type_name=info.name,
        space=MemorySpace(target.space) if target else MemorySpace.PRIVATE,
        is_pointer=target is not None,
        is_const=target.is_const if target else info.is_const,
        is_restrict=info.is_restrict,
        is_volatile=target.is_volatile if target else info.is_volatile,
        element_bytes=target.bytes if target else info.bytes,
        is_read=target is not None and any(one.kind is not AccessKind.STORE for one in own),
        is_written=target is not None and any(one.kind is not AccessKind.LOAD for one in own),
    )


def find_local_arrays(function: Node) -> list[Node]:
    """Find the declarations of arrays and variables in local memory."""
    return [
        node
        for node in function.walk()
        if node.kind == kinds.VARIABLE and node.type.space == "local"
        and node.type.type_class is not TypeClass.POINTER
    ]  # fmt: skip


def _describe_block(block: Block, spaces: dict[int, MemorySpace]) -> BlockFacts:
    memory: dict[MemoryOperation, float] = {}
    for site in block.sites:
        if not site.is_atomic:
            operation = MemoryOperation(
                space=spaces.get(site.id, MemorySpace(site.space)),
                is_store=site.is_store,
                bytes=site.bytes,
            )
            memory[operation] = memory.get(operation, 0) + 1
    return BlockFacts(
        id=block.id,
        function=block.function,
        kind=block.kind.value,
        line=block.line,
        last_line=max(block.line, block.last_line),
        parent=block.parent,
        count=block.count.terms,
        operations=OperationCounts(operations=dict(block.operations), memory=memory),
    )


# libclang's objects free themselves through a module that is gone when caches are, at the very end.
atexit.register(analyse.cache_clear)
atexit.register(read_facts_with.cache_clear)
atexit.register(_read_tree.cache_clear)
