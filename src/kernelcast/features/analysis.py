"""What the source of a kernel tells: the front door of static analysis."""

import gc
import io
import pickle
from base64 import b64decode, b64encode
from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Lock
from typing import Any, ParamSpec, TypeVar, cast

from cachetools import LRUCache, cached

from kernelcast.compiling import cache
from kernelcast.compiling.libraries import digest_code
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.ir.reading import compile_program, read_code, run_deep
from kernelcast.records.arguments import Access
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel

Asked = ParamSpec("Asked")
Told = TypeVar("Told")


def _name_code(kernel: Kernel, *more: Hashable) -> Hashable:
    try:
        code = compile_program(kernel)
    except InputError:
        return kernel, *more
    return code, kernel.name, kernel.source, kernel.source_name, *more


def remember_by_code(most: int) -> Callable[[Callable[Asked, Told]], Callable[Asked, Told]]:
    """Keep what a function tells of kernels: devices whose compilers see the same code share it."""

    def decorate(function: Callable[Asked, Told]) -> Callable[Asked, Told]:
        return cached(LRUCache(most), key=_name_code, lock=Lock())(function)

    return decorate


class _FactsReader(pickle.Unpickler):
    """Reads facts that were kept, and imports and makes nothing of any other kind."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - a class
        rooms = ("kernelcast.expressions.", "kernelcast.records.")
        found = super().find_class(module, name) if module.startswith(rooms) else None
        if isinstance(found, type) and found.__module__.startswith(rooms):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of facts")


@remember_by_code(64)
def read_facts(kernel: Kernel, known_buffers: frozenset[str] = frozenset()) -> KernelFacts:
    """Read the facts about a kernel, whose loops and conditions may ask what buffers hold."""
    is_enabled = gc.isenabled()
    gc.disable()  # to look for cycles among what stays takes a third, of kept facts more than half
    try:
        code = compile_program(kernel)
        key = cache.digest((
            digest_code("compiling", "features", "expressions", "records"), code.text,
            repr(code.gaps), kernel.source, kernel.name, *sorted(known_buffers),
        ))  # fmt: skip
        with suppress(KeyError, ValueError, EOFError, pickle.UnpicklingError):  # else read anew
            kept = io.BytesIO(b64decode((cache.read(key) or {})["facts"]))
            return cast("KernelFacts", _FactsReader(kept).load())
        _, facts = read_code(kernel, known_buffers)
        content = run_deep(lambda: pickle.dumps(facts, protocol=5))
        cache.write(key, {"facts": b64encode(content).decode()})
        return facts
    finally:
        if is_enabled:
            gc.enable()


@remember_by_code(256)
def infer_accesses(kernel: Kernel, argument_count: int) -> tuple[Access | None, ...]:
    """Find which arguments are only read; None for those that may be stored to."""
    try:
        facts = read_facts(kernel)
    except InputError:
        return (None,) * argument_count
    if facts.gaps or len(facts.parameters) != argument_count:
        return (None,) * argument_count
    return tuple(
        Access.READ if one.is_pointer and not one.is_written else None for one in facts.parameters
    )
