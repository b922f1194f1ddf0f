"""Launches of a program's own pyopencl objects become launches like any other."""

import operator
import threading
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from kernelcast.expressions.accesses import AddressPattern
from kernelcast.features.analysis import read_facts, remember_by_code
from kernelcast.features.counting.static import bind_scalars, find_index_buffers
from kernelcast.features.touched_ranges import TouchedRanges, find_touched
from kernelcast.launches.data_folder import kept_folder
from kernelcast.launches.source_check import (
    list_parameters,
    refuse_overruns,
    refuse_persistent,
    tell_sizes,
)
from kernelcast.records.arguments import Access, HeldBuffer
from kernelcast.records.errors import InputError, NDRangeError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.arguments import check_count, infer_access
from kernelcast.sampling.compiler_facts import check_launch, choose_local_size
from kernelcast.sampling.launch import OpenCLLaunch, explained_errors
from kernelcast.sampling.scratch import KernelArgument, ScratchArguments
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.user_objects import (
    UserKernel,
    UserProgram,
    UserQueue,
    check_objects,
    describe_argument,
    find_overlaps,
    list_arguments,
    name_kernel,
    read_kernel,
    session_of,
    take_argument,
)


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A launch of a program's own pyopencl objects, as for `pyopencl.enqueue_nd_range_kernel`."""

    kernel: UserKernel
    """A `pyopencl.Kernel`; its source and build options are taken from its program."""
    global_size: Sequence[int]
    """Work-items per dimension."""
    local_size: Sequence[int] | None
    """Work-items of a work-group per dimension; None lets the device choose."""
    args: Sequence[Any]
    """The kernel's arguments in order: buffers, pyopencl's arrays, NumPy scalars,
    `pyopencl.LocalMemory`."""
    _: KW_ONLY
    queue: UserQueue
    """A `pyopencl.CommandQueue` on the device; finish what it runs before an estimate, or it will
    be timed too."""
    global_offset: Sequence[int] | None = None
    """First global id per dimension."""
    source: str | None = None
    """Used instead of the program's own source."""
    build_options: str | Sequence[str] | None = None
    """Used instead of the program's own options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLaunch:
    """A launch of live objects that was found right, described as any other."""

    problem: Problem
    """The launch, local size chosen."""
    session: DeviceSession
    """The device, in the program's own context."""
    values: tuple[KernelArgument, ...]

    def hold(self, *, inferred: Sequence[Access | None]) -> AbstractContextManager[OpenCLLaunch]:
        """Prepare the launch; the buffers stay as they are, work-groups write to copies."""
        kernel, ndrange = self.problem.kernel, self.problem.ndrange
        parameters = self.session.whole_kernel(kernel).parameters
        pairs = zip(parameters, inferred, strict=True)
        accesses = [infer_access(parameter, known) for parameter, known in pairs]
        with explained_errors(kernel, self.session.description):
            reach = find_reach(self.problem)
            copies = ScratchArguments(self.session.buffers, self.values, accesses, reach)
        return OpenCLLaunch(self.session, kernel, ndrange, copies)


def describe_live(launch: Launch) -> LiveLaunch:
    """Check a launch of live objects and describe it; nothing of it is run."""
    offset, local = launch.global_offset, launch.local_size
    given = NDRange(
        global_size=_read_sizes("global size", launch.global_size),
        local_size=None if local is None else _read_sizes("local size", local),
        global_offset=() if offset is None else _read_sizes("global offset", offset),
    )
    check_objects(launch.kernel, launch.queue)
    given_arguments = list_arguments(launch.args)
    session = session_of(launch.queue, kept_folder())
    known = _find_kernel(launch, session)
    kernel = known.kernel
    check_count(kernel.name, known.built.parameters, len(given_arguments))
    values = tuple(map(take_argument, known.built.parameters, given_arguments))
    arguments = [
        describe_argument(session, parameter, value, is_decisive=place in known.decisive)
        for place, (parameter, value) in enumerate(zip(known.parameters, values, strict=True))
    ]
    for index, overlaps in find_overlaps(session, values).items():
        held = arguments[index]
        assert isinstance(held, HeldBuffer)
        arguments[index] = replace(held, overlaps=overlaps)
    with nullcontext() if given.local_size else session.lock:  # the device is asked by a kernel
        ndrange = choose_local_size(session, known.built.kernel, given)
    check_launch(session, known.built.kernel, kernel, ndrange)
    problem = Problem(name=kernel.name, kernel=kernel, ndrange=ndrange, arguments=tuple(arguments))
    refuse_overruns(problem)
    return LiveLaunch(problem=problem, session=session, values=values)


class _LiveKernel:
    """A kernel of a program, built for a session."""

    def __init__(self, launch: Launch, session: DeviceSession, program: object) -> None:
        self.program = program  # held, so that its place in memory names it
        self.kernel = kernel = read_kernel(
            launch.kernel, session.device, source=launch.source, options=launch.build_options
        )
        refuse_persistent(kernel)
        is_own = launch.source is None and launch.build_options is None
        parameters = list_parameters(kernel) if is_own else None
        with session.lock:
            if parameters is not None and isinstance(program, UserProgram):
                self.built = session.adopt(kernel, program, parameters)
            else:
                self.built = session.whole_kernel(kernel)
            session.ask_limits(self.built.kernel, kernel)
        self.decisive = find_decisive(kernel)
        self.parameters = tell_sizes(kernel, self.built.parameters)


_kernels: WeakKeyDictionary[DeviceSession, LRUCache[Hashable, _LiveKernel]] = WeakKeyDictionary()
_kernels_lock = threading.Lock()


def _find_kernel(launch: Launch, session: DeviceSession) -> _LiveKernel:
    try:
        program, key = name_kernel(launch.kernel, launch.queue)
        options = launch.build_options
        given = options if options is None or isinstance(options, str) else tuple(options)
        key = key, launch.source, given
    except Exception:  # noqa: BLE001 - who reads the kernel says what is wrong with it
        return _LiveKernel(launch, session, None)
    with _kernels_lock:
        kept = _kernels.setdefault(session, LRUCache(64))
        found = kept.get(key)
    if found is None:
        found = _LiveKernel(launch, session, program)
        with _kernels_lock:
            kept[key] = found
    return found


def find_reach(problem: Problem) -> TouchedRanges | None:
    """Find out which bytes boxes of a launch touch; of buffers that decide anything, all."""
    kernel = problem.kernel
    try:
        facts = read_facts(kernel)
    except (InputError, RecursionError):
        return None
    found = find_touched(facts, problem.ndrange, bind_scalars(facts, problem.arguments))
    return None if found is None else found.without(find_decisive(kernel))


@remember_by_code(256)
def find_decisive(kernel: Kernel) -> frozenset[int]:
    """Find the buffers whose contents decide what work-items do: loops, conditions, addresses."""
    try:
        facts = read_facts(kernel)
    except (InputError, RecursionError):
        # More than any device takes: it stands for all.
        return frozenset(range(1024))
    is_followed = not facts.gaps and all(
        one.pattern is not AddressPattern.UNKNOWN for one in facts.accesses
    )
    decide = find_index_buffers(facts).union(*(one.sources for one in facts.accesses))
    return frozenset(
        place
        for place, one in enumerate(facts.parameters)
        if one.is_pointer and one.is_read and (one.name in decide or not is_followed)
    )


def _read_sizes(what: str, sizes: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(operator.index(one) for one in sizes)
    except TypeError:
        msg = f"{what} {sizes!r}: give a sequence of whole numbers, one per dimension"
        raise NDRangeError(msg) from None
