"""What the source of a kernel tells: the front door of static analysis.

A kernel is compiled as far as its facts are read from: inlined, its variables in registers. Facts
are kept in the user's cache.
"""

import gc
import io
import pickle
import re
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

from cachetools import LRUCache, cached

from kernelcast.compiling import Compiled, CompiledKernel, Target, cache, compile_kernel
from kernelcast.compiling.compiler import digest_code
from kernelcast.compiling.inlining import read_inlined
from kernelcast.compiling.targets import read_options
from kernelcast.expressions.kernel_facts import Gap, KernelFacts
from kernelcast.features.ir.facts import FactsReader
from kernelcast.features.ir.scalars import Evaluator
from kernelcast.records.arguments import Access
from kernelcast.records.errors import CompileError, InputError, KernelNotFoundError
from kernelcast.records.kernel import Dialect, Kernel

Asked = ParamSpec("Asked")
Told = TypeVar("Told")
_LOCK = threading.Lock()
# clang's errors have no numbers, so their text must do.
_TYPE = re.compile(r"unknown type name '(\w+)'")
_VALUE = re.compile(r"use of undeclared identifier '(\w+)'")
_VECTOR = re.compile(r"vec|(?<!\d)[234]$", re.IGNORECASE)
_NAME: Final = "<source>"
_ERROR: Final = re.compile(r"^(\S*:\d+:\d+): (?:fatal )?error: (.*)$", re.MULTILINE)
_EXTENSIONS: Final = Dialect().extensions | {
    "cl_khr_subgroups", "cl_khr_subgroup_shuffle", "cl_khr_gl_msaa_sharing", "cl_khr_depth_images",
    "cl_khr_mipmap_image",
}  # fmt: skip


def run_deep(function: Callable[[], Told]) -> Told:
    """Run a function with room for deep recursion."""
    # Both settings are the whole process's.
    with _LOCK, ThreadPoolExecutor(1, "kernelcast deep stack") as pool:
        # Address space; memory is taken only as far as the stack grows.
        frames, stack_bytes = sys.getrecursionlimit(), threading.stack_size(512 << 20)
        try:
            sys.setrecursionlimit(max(frames, 60_000))
            return pool.submit(function).result()
        finally:
            sys.setrecursionlimit(frames)
            threading.stack_size(stack_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSource:
    text: str
    kernels: tuple[CompiledKernel, ...]
    gaps: tuple[Gap, ...] = ()
    """What the source does not define, and its other errors."""


def read_code(
    kernel: Kernel, known_buffers: frozenset[str] = frozenset()
) -> tuple[FactsReader, KernelFacts]:
    """Read a kernel's facts, with what tells where in the code they come from."""
    code = open_code(kernel, known_buffers)

    def read() -> tuple[FactsReader, KernelFacts]:
        reader = FactsReader(code, kernel.source)
        return reader, reader.read(compile_program(kernel).gaps)

    try:
        return run_deep(read)
    except RecursionError:
        raise InputError(
            f"{kernel.source_name}: kernel {kernel.name!r} nests too deeply to be analysed; "
            "nest less deeply"
        ) from None


def open_code(kernel: Kernel, known_buffers: frozenset[str] = frozenset()) -> Evaluator:
    """Compile a kernel, and prepare to ask what its values are."""
    find_kernel(kernel)
    module = read_inlined(compile_program(kernel).text, kernel.name)
    return Evaluator(module, kernel.name, _NAME, known_buffers)


def find_kernel(kernel: Kernel) -> CompiledKernel:
    kernels = {one.name: one for one in compile_program(kernel).kernels}
    if kernel.name not in kernels:
        have = ", ".join(kernels) or "none"
        msg = f"kernel {kernel.name!r} is not in {kernel.source_name}; its kernels are: {have}"
        raise KernelNotFoundError(msg)
    return kernels[kernel.name]


def compile_program(kernel: Kernel) -> CompiledSource:
    return compile_source(kernel.source, kernel.build_options, kernel.source_name, kernel.dialect)


@lru_cache(maxsize=16)
def compile_source(
    source: str, options: tuple[str, ...], source_name: str, dialect: Dialect | None = None
) -> CompiledSource:
    """Compile a source as the version of OpenCL C that it is written in."""
    given = read_options(options)
    folders = [Path(one).absolute() for one in given.folders if Path(one).is_dir()]
    dialect = dialect or Dialect(extensions=_EXTENSIONS)
    compile_text = partial(
        compile_kernel, target=Target.parse("ir"), source_name=_NAME, include_folders=folders,
        dialect=dialect,
    )  # fmt: skip
    errors: dict[tuple[str, ...], CompileError] = {}
    # The device's own has fewer words that a source can collide with than all that came later.
    for language in (given.language,) if given.language else (dialect.language, "CL3.0", "CL2.0"):
        words = (*given.flags, f"-cl-std={language}")
        try:
            compiled = compile_text(source, words)
            return CompiledSource(text=compiled.text, kernels=compiled.kernels)
        except CompileError as error:
            errors[words] = error
    # Names that it lacks are declared in the version that finds the least wrong with it.
    best = min(errors, key=lambda one: len(read_errors(errors[one])))
    try:
        return _fill_in(partial(compile_text, options=best), source, errors[best])
    except CompileError as error:
        raise CompileError(str(error).replace(_NAME, source_name)) from error


def read_errors(error: CompileError) -> list[str]:
    """List the errors that a compiler names, each as ``file:line:column: words``."""
    return [f"{place}: {words}" for place, words in _ERROR.findall(str(error))]


def _fill_in(
    compile_text: Callable[[str], Compiled], source: str, first: CompileError
) -> CompiledSource:
    """Declare names that a source lacks until nothing else is wrong with it."""
    # What each name is taken for: a type, a function, or a number where that is empty.
    made: dict[str, str] = {}
    messages = errors = read_errors(first)
    are_constants = False
    for _ in range(6):
        said = "\n".join(messages)
        more = {
            name: "float4" if _VECTOR.search(name) else "float"
            for name in _TYPE.findall(said) if name not in made
        } or {
            name: "()" if re.search(rf"\b{name}\s*\(", source) else ""
            for name in _VALUE.findall(said) if name not in made
        }  # fmt: skip
        if not more and (are_constants or not made):
            break
        # A number that is asked for as an array's size has to be one: neither small nor odd.
        are_constants = are_constants or not more
        number = "enum {{ {} = 16 }};" if are_constants else "extern constant int {};"
        made |= more
        lines, gaps = [], []
        for name, kind in made.items():
            taken = f"{name} is not defined{kind and f', taken as {kind}'}; give -D{name}=..."
            if kind == "()":
                lines.append(f"#define {name}(...) 0")
                taken = f"the function {name} is not defined; add it to the source"
            else:
                lines.append(f"typedef {kind} {name};" if kind else number.format(name))
            gaps.append(Gap(line=0, reason=taken))
        gaps += [Gap(line=0, reason=f"error in the source: {one}") for one in errors[:20]]
        try:
            compiled = compile_text("\n".join([*lines, f'#line 1 "{_NAME}"', source]))
            return CompiledSource(text=compiled.text, kernels=compiled.kernels, gaps=tuple(gaps))
        except CompileError as error:
            messages = read_errors(error)
    raise first


def remember_by_code(most: int) -> Callable[[Callable[Asked, Told]], Callable[Asked, Told]]:
    """Keep what a function tells of kernels: devices whose compilers see the same code share it."""

    def name_code(kernel: Kernel, *more: Hashable) -> Hashable:
        try:
            code = compile_program(kernel)
        except InputError:
            return kernel, *more
        return code, kernel.name, kernel.source, kernel.source_name, *more

    return cached(LRUCache(most), key=name_code, lock=threading.Lock())


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
    with suppress(InputError):
        facts = read_facts(kernel)
        if not facts.gaps and len(facts.parameters) == argument_count:
            return tuple(
                Access.READ if one.is_pointer and not one.is_written else None
                for one in facts.parameters
            )
    return (None,) * argument_count
