"""Launches on buffers that are ours, so that kernels may write to them: of problems to be sampled,
and of boxes of work-groups that are run for their results.

Nothing has to be copied before a kernel writes: what it may have changed is filled anew by its
recipe. Only where that takes longer than to copy (permutations, files, memory that the host cannot
write to) a copy is kept. Of buffers that a kernel writes only those parts are filled that its
samples touch, where the source tells which; of those that it only reads all, since samples must not
find in caches what was filled just before them.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import (
    Access,
    BufferArgument,
    ImageArgument,
    Init,
    LocalArgument,
    SamplerArgument,
    ScalarArgument,
    make_scalar,
)
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.problem import Problem
from kernelcast.sampling.arguments import (
    Recipe,
    check_arguments,
    infer_access,
    make_array,
    shape_of,
)
from kernelcast.sampling.building import BuiltKernel, build_program, read_kernel_source, take_kernel
from kernelcast.sampling.compiler_facts import check_launch, check_memory, choose_local_size
from kernelcast.sampling.discovery import choose_device, describe_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch, enqueue, enqueue_window, explained_errors
from kernelcast.sampling.opencl import OtherDriver, cl, mapped_memory
from kernelcast.sampling.scratch import SMALL_BYTES, KernelArgument, Reach, WrittenArguments
from kernelcast.sampling.session import DeviceSession

_SLOW_TO_MAKE = frozenset({Init.PERMUTATION, Init.FILE})


class ProblemArguments(WrittenArguments):
    """A problem's arguments with true contents, random ones by the seed and their position."""

    def __init__(
        self,
        session: DeviceSession,
        problem: Problem,
        accesses: Sequence[Access | None],
        *,
        seed: int,
        reach: Reach | None = None,
    ) -> None:
        pool, recipes = session.buffers, list_recipes(problem, seed=seed)
        self._images: list[cl.Image] = []
        known = () if reach is None or not pool.fills_in_place else reach.places
        super().__init__(
            pool, {place: one.bytes for place, (one, _) in recipes.items()},
            {place: (place, 0) for place in recipes}, accesses, reach,
        )  # fmt: skip
        written = self._sizes.keys()
        is_slow = {place: recipes[place][0].init in _SLOW_TO_MAKE for place in written}
        parts = {
            place
            for place in written & {*known}
            if not is_slow[place] and self._sizes[place] >= SMALL_BYTES
        }
        copied = [one for one in self._noticed if is_slow[one] or not pool.fills_in_place]
        filled = [place for place in recipes if place not in parts]
        self._recipes = recipes
        self._held = dict(zip(filled, pool.take([recipes[one] for one in filled]), strict=True))
        # Nobody writes to a copy: what it holds is found again by the next launch.
        self._copies = [self._held[place] for place in copied]
        self._originals = {place: self._held[place] for place in copied}
        self._held |= {place: pool.get(recipes[place][0].bytes) for place in (*copied, *parts)}
        for place in written:
            pool.forget(self._held[place])  # from now on
            if place not in parts:
                self._ready[place].add([(0, self._sizes[place])])
        self._load({place: [(0, self._sizes[place])] for place in copied})
        for place, argument in enumerate(problem.arguments):
            is_object = isinstance(argument, ImageArgument | SamplerArgument)
            if is_object and isinstance(session.device, OtherDriver):
                raise DeviceLimitError(
                    f"{session.description.id}: images and samplers are OpenCL devices' only"
                )
            match argument:
                case ImageArgument():
                    self._images.append(_make_image(session, argument, seed=1000 * seed + place))
                    self.arguments.append(self._images[-1])
                case SamplerArgument():
                    self.arguments.append(cl.Sampler(
                        session.context, argument.normalized,
                        getattr(cl.addressing_mode, argument.address.upper()),
                        getattr(cl.filter_mode, argument.filter.upper()),
                    ))  # fmt: skip
                case BufferArgument(count=0):
                    self.arguments.append(None)
                case BufferArgument():
                    self.arguments.append(self._held[place])
                case ScalarArgument():
                    self.arguments.append(make_scalar(argument))
                case LocalArgument():
                    self.arguments.append(cl.LocalMemory(argument.bytes))

    def release(self) -> None:
        super().release()
        for image in self._images:
            image.release()
        self._pool.give_back(self._copies)
        self._images, self._copies = [], []


def list_recipes(problem: Problem, *, seed: int) -> dict[int, Recipe]:
    return {
        place: (one, 1000 * seed + place)
        for place, one in enumerate(problem.arguments)
        if isinstance(one, BufferArgument) and one.count and not isinstance(one, ImageArgument)
    }


def _make_image(session: DeviceSession, argument: ImageArgument, *, seed: int) -> cl.Image:
    order = getattr(cl.channel_order, argument.order.upper())
    channel = getattr(cl.channel_type, argument.channel.upper())
    layers = (argument.layers,) if argument.layers else ()
    try:
        return cl.create_image(
            session.context,
            cast("cl.mem_flags", cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR),
            cl.ImageFormat(order, channel), shape=(*argument.size, *layers),
            hostbuf=np.ascontiguousarray(make_array(argument, seed=seed)),
            is_array=bool(layers),
        )  # fmt: skip
    except cl.Error as error:
        size = " x ".join(map(str, argument.size))
        raise DeviceLimitError(
            f"{session.description.id}: makes no {argument.type_name} of {size} pixels of "
            f"{argument.order} {argument.channel} ({error})"
        ) from error


def check_problem(
    session: DeviceSession,
    problem: Problem,
    built: BuiltKernel,
    inferred: Sequence[Access | None] | None = None,
) -> tuple[Problem, list[Access | None]]:
    """Check a problem against a device and its built kernel; fix local size and accesses."""
    kernel, parameters, device = problem.kernel, built.parameters, session.description
    check_arguments(kernel.name, parameters, problem.arguments)
    check_memory(device, problem.arguments)  # before a large host array is made in vain
    ndrange = choose_local_size(session, built.kernel, problem.ndrange)
    check_launch(session, built.kernel, kernel, ndrange)
    accesses = [
        infer_access(parameter, argument.access or known)
        if isinstance(argument, BufferArgument)
        else None
        for parameter, argument, known in zip(
            parameters, problem.arguments, inferred or [None] * len(parameters), strict=True
        )
    ]
    return replace(problem, ndrange=ndrange), accesses


@contextmanager
def prepared_problem(
    session: DeviceSession,
    problem: Problem,
    *,
    seed: int,
    inferred: Sequence[Access | None] | None = None,
    find_reach: Callable[[Problem], Reach | None] = lambda _: None,
) -> Iterator[OpenCLLaunch]:
    """Build a problem on a device and keep its buffers for the length of the block; its own
    accesses go before inferred ones, and `find_reach` is asked once the local size is chosen."""
    built = session.whole_kernel(problem.kernel)
    problem, accesses = check_problem(session, problem, built, inferred)
    with (
        _holding(session, problem, accesses, seed, find_reach(problem)) as held,
        OpenCLLaunch(session, problem.kernel, problem.ndrange, held) as launch,
    ):
        yield launch


@contextmanager
def _holding(
    session: DeviceSession,
    problem: Problem,
    accesses: Sequence[Access | None],
    seed: int,
    reach: Reach | None = None,
) -> Iterator[ProblemArguments]:
    with explained_errors(problem.kernel, session.description):
        held = ProblemArguments(session, problem, accesses, seed=seed, reach=reach)
        try:
            yield held
        finally:
            held.release()


Values: TypeAlias = tuple[npt.NDArray[Any] | np.generic | None, ...]
"""Arguments in the kernel's order: buffers as arrays of shape (count,), or (count, lanes) for
vectors; scalars as they are; None for local memory."""


def run_whole(session: DeviceSession, problem: Problem, *, seed: int) -> tuple[Values, Values]:
    """Run a problem once; give its arguments before and after."""
    built = session.whole_kernel(problem.kernel)
    problem, _ = check_problem(session, problem, built)
    accesses = [Access.WRITE] * len(problem.arguments)  # nothing is restored
    with _holding(session, problem, accesses, seed) as held:

        def read() -> Values:
            values: list[Any] = []
            for described, given in zip(problem.arguments, held.arguments, strict=True):
                value = given if isinstance(given, np.ndarray | np.generic) else None
                if isinstance(described, BufferArgument):
                    value = np.empty(shape_of(described), dtype=described.element.dtype)
                    cl.enqueue_copy(session.queue, value, given)
                values.append(value)
            return tuple(values)

        before = read()
        built.kernel.set_args(*held.arguments)
        enqueue(session.queue, built.kernel, problem.ndrange)
        session.queue.finish()
        return before, read()


def prepare_whole(
    session: DeviceSession, problem: Problem, inferred: Sequence[Access | None], *, seed: int
) -> Callable[[], tuple[float, float]]:
    """Build a launch once; give what runs it as a whole, each time from its first content, and
    tells its seconds and those that all threads of this process spent meanwhile."""
    text = read_kernel_source(problem.kernel)
    built = take_kernel(build_program(session.context, session.device, *text), problem.kernel)
    problem, accesses = check_problem(session, problem, built, inferred)

    def run() -> tuple[float, float]:
        with _holding(session, problem, accesses, seed) as held:
            built.kernel.set_args(*held.arguments)
            session.queue.finish()
            session.settle()
            used_s = time.process_time()
            start = partial(enqueue, session.queue, built.kernel, problem.ndrange)
            seconds = session.timer.by_clock(start)
            session.note_busy()
            return seconds, time.process_time() - used_s

    return run


Bytes = npt.NDArray[np.uint8]


class PartialLaunch:
    """A kernel with index space and buffers of its own, run box by box: each work-group once, and
    its results are read back. Arrays by the buffers' positions are copied, but for those in
    `in_place`, which the kernel only reads or only writes: a device that works in the host's memory
    uses, and changes, them where they lie."""

    def __init__(
        self,
        session: DeviceSession,
        problem: Problem,
        arrays: Mapping[int, npt.NDArray[Any]],
        in_place: Collection[int] = (),
    ) -> None:
        started_s = time.monotonic()
        self._session, kernel = session, problem.kernel
        self._problem, _ = check_problem(session, problem, session.whole_kernel(kernel))
        self._held: list[KernelArgument] = []
        self.in_place: dict[int, npt.NDArray[Any]] = {}
        """Arrays of the buffers that are used where they lie, by position."""
        self.uploaded_bytes = 0
        with explained_errors(kernel, session.description):
            self._window = session.window_kernel(kernel, self._problem.ndrange)
            self.build_s = time.monotonic() - started_s
            for index, argument in enumerate(problem.arguments):
                if isinstance(argument, ScalarArgument):
                    held: KernelArgument = make_scalar(argument)
                elif isinstance(argument, LocalArgument):
                    held = cl.LocalMemory(argument.bytes)
                else:
                    content = arrays[index]
                    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
                    if index in in_place and session.works_in_host_memory:
                        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
                        self.in_place[index] = content
                    else:
                        self.uploaded_bytes += content.nbytes
                    held = cl.Buffer(session.context, flags, hostbuf=content)
                self._held.append(held)
                self._window.kernel.set_arg(index, held)
            session.queue.finish()
        self.upload_s = time.monotonic() - started_s - self.build_s

    def run(self, boxes: Sequence[GroupBox]) -> None:
        """Run boxes one after the other."""
        with explained_errors(self._problem.kernel, self._session.description):
            for box in boxes:
                enqueue_window(self._session.queue, self._window, self._problem.ndrange, box)
                self._session.queue.finish()

    def read(self, index: int, spans: Sequence[tuple[int, int]], into: Bytes) -> None:
        """Copy stretches of a buffer's bytes, ascending, to the same places of an array."""
        queue, held = self._session.queue, self._held[index]
        own = self.in_place.get(index)
        with explained_errors(self._problem.kernel, self._session.description):
            if own is not None and (own.ctypes.data, own.nbytes) == (into.ctypes.data, into.nbytes):
                # Nothing to copy; mapping is how OpenCL has the host see what was written.
                with mapped_memory(queue, held, into.size, cl.map_flags.READ):
                    pass
            elif len(spans) <= 64:
                for start, stop in spans:
                    cl.enqueue_copy(
                        queue, into[start:stop], held, src_offset=start, is_blocking=False
                    )
                queue.finish()
            else:
                # Many small copies take longer than one of all that lies between them; where the
                # host sees the device's memory, mapping copies nothing.
                first, size = spans[0][0], max(stop for _, stop in spans) - spans[0][0]
                flags = cl.map_flags.READ
                with mapped_memory(queue, held, size, flags, first_byte=first) as mapped:
                    for start, stop in spans:
                        into[start:stop] = mapped[start - first : stop - first]

    def release(self) -> None:
        self._session.queue.finish()
        for one in self._held:
            if isinstance(one, cl.Buffer):
                one.release()
        self._held = []
        self.in_place = {}


def open_place(device_id: str, compute_units: int | None = None) -> DeviceSession:
    """Open a device, or a part of it, without a trial: the host's clock times launches."""
    description, device = choose_device(device_id, find_devices())
    if compute_units is not None:
        by_counts = cl.device_partition_property.BY_COUNTS
        refused = (
            f"{description.id}: cannot be divided into a sub-device of {compute_units} of its "
            f"{description.compute_units} compute units"
        )
        kinds = cast("list[int]", device.partition_properties)
        if by_counts not in kinds:  # rusticl has none, and crashes when it is asked for one
            raise DeviceLimitError(refused)
        try:
            # pyopencl types the list as properties only; counts stand in it too
            device = device.create_sub_devices([by_counts, compute_units, 0])[0]  # type: ignore[list-item]
        except cl.Error as error:
            raise DeviceLimitError(f"{refused}: {error}") from error
        description = describe_device(device)
    return DeviceSession(description, cl.Context([device]), device)
