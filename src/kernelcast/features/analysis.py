"""Everything the source of a kernel tells: the front door of static analysis."""

import atexit
import ctypes
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

from cachetools import LRUCache, cached

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.blocks.model import BlockList
from kernelcast.features.blocks.statements import divide
from kernelcast.features.interpreter import paused_collector, run_deep
from kernelcast.features.ir.reading import compile_source, open_code, read_compiled
from kernelcast.features.ir.slices import Code
from kernelcast.features.parsing import MAIN_FILE, ParsedSource, list_kernels, parse_source
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.features.syntax.types import TypeClass
from kernelcast.records.errors import InputError, KernelNotFoundError
from kernelcast.records.kernel import Kernel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DividedSource:
    """A kernel's syntax tree, divided where counters can be written into the source."""

    tree: SyntaxTree
    """The unit."""
    function: Node
    """The kernel's definition."""
    blocks: BlockList
    """Places of the counters and of the memory operations."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis:
    """The facts about a kernel, and its syntax tree where that is asked for."""

    kernel: Kernel
    facts: KernelFacts
    """What is passed on to other rooms."""

    @cached_property
    def divided(self) -> DividedSource:
        """The syntax tree with the places of counters."""
        kernel = self.kernel
        parsed = parse_source(
            kernel.source, kernel.build_options, source_name=kernel.source_name,
            dialect=kernel.dialect,
        )  # fmt: skip
        return divide_source(parsed, kernel.name, source_name=kernel.source_name)

    @cached_property
    def code(self) -> Code:
        """The compiled code with what its values are."""
        return open_code(self.kernel)

    @property
    def tree(self) -> SyntaxTree:
        """The unit."""
        return self.divided.tree

    @property
    def function(self) -> Node:
        """The kernel's definition."""
        return self.divided.function

    @property
    def blocks(self) -> BlockList:
        """Places of the counters and of the memory operations."""
        return self.divided.blocks


def _name_code(kernel: Kernel, known_buffers: frozenset[str] = frozenset()) -> Hashable:
    """Name what facts follow from: devices whose compilers see the same code share them."""
    code = compile_source(kernel.source, kernel.build_options, kernel.source_name, kernel.dialect)
    return code, kernel.name, kernel.source, kernel.source_name, known_buffers


@cached(LRUCache(64), key=_name_code, lock=Lock())
def analyse(kernel: Kernel) -> Analysis:
    """Analyse a kernel's source.

    Returns
    -------
    Analysis
        Partial where the source lacks names or holds what is not followed; `facts.gaps` says
        which.

    Raises
    ------
    CompileError
        If the compiler refuses the source; holds its words.
    KernelNotFoundError
        If it defines no kernel of that name.
    MissingExtraError
        If there is no compiler; says what to install.
    """
    return Analysis(kernel=kernel, facts=read_facts(kernel))


@cached(LRUCache(64), key=_name_code, lock=Lock())
def read_facts(kernel: Kernel, known_buffers: frozenset[str] = frozenset()) -> KernelFacts:
    """Read the facts about a kernel, whose loops and conditions may ask what buffers hold.

    Parameters
    ----------
    known_buffers : frozenset of str
        Parameters whose contents are known and that the kernel does not write.

    Returns
    -------
    KernelFacts
        As of `analyse`; with `contents` where buffers are known.

    Raises
    ------
    CompileError, KernelNotFoundError, MissingExtraError
        As `analyse`.
    """
    return read_compiled(kernel, known_buffers)


def divide_source(
    parsed: ParsedSource, name: str, *, source_name: str = "<source>"
) -> DividedSource:
    """Divide one kernel of a source that is parsed already.

    Raises
    ------
    KernelNotFoundError
        If it defines no kernel of that name.
    InputError
        If it nests too deeply.
    """

    def divide_tree() -> DividedSource:
        names = [one.name for one in parsed.placeholders if not one.type_name]
        tree = SyntaxTree(parsed.unit, parsed.source, MAIN_FILE, names)
        function = tree.function_named(name)
        if function is None:
            have = ", ".join(list_kernels(parsed)) or "none"
            msg = f"kernel {name!r} is not in {source_name}; its kernels are: {have}"
            raise KernelNotFoundError(msg)
        return DividedSource(tree=tree, function=function, blocks=divide(tree, function))

    attempts: tuple[Callable[[], DividedSource], ...] = (
        divide_tree, lambda: run_deep(divide_tree),
    )  # fmt: skip
    with paused_collector():
        for attempt in attempts:
            try:
                return attempt()
            except (RecursionError, ctypes.ArgumentError):
                continue  # ctypes wraps a recursion that ends within a callback
    msg = f"{source_name}: kernel {name!r} nests too deeply to be analysed; nest less deeply"
    raise InputError(msg)


def find_local_arrays(function: Node) -> list[Node]:
    """Find the declarations of arrays and variables in local memory."""
    return [
        node
        for node in function.walk()
        if node.kind == kinds.VARIABLE and node.type.space == "local"
        and node.type.type_class is not TypeClass.POINTER
    ]  # fmt: skip


# libclang's objects free themselves through a module that is gone when caches are, at the very end.
atexit.register(analyse.cache_clear)
