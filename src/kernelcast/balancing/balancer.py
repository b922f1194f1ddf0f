"""Runs kernels over several devices, which are kept open for one launch after the other."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.balancing.device_processes import DeviceProcesses
from kernelcast.balancing.launch_buffers import Failed, LaunchBuffers, Prepare
from kernelcast.balancing.scheduler import (
    DeviceState,
    FloatArray,
    Scheduler,
    Stage,
    WorkQueue,
    join_errors,
    spans_of,
)
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.features.analysis import read_facts
from kernelcast.features.write_safety import SplitSafety, assess_split
from kernelcast.launches.devices import list_descriptions
from kernelcast.launches.modelling.launches import choose_local_size, model_kernel
from kernelcast.launches.source_check import refuse_overruns
from kernelcast.launches.weighing import plan_by_source, weigh_boxes
from kernelcast.records.arguments import (
    Argument,
    BufferArgument,
    ElementType,
    ImageArgument,
    LocalArgument,
    SamplerArgument,
    ScalarArgument,
)
from kernelcast.records.balance import Activity, BalanceReport, Bar, DeviceShare, SlabSpace
from kernelcast.records.device import DeviceDescription, DeviceKind, match_device_id
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.plain import pick
from kernelcast.records.problem import Problem
from kernelcast.sampling.arguments import make_array
from kernelcast.sampling.plan import SamplingPlan

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch

Arrays: TypeAlias = Mapping[int, npt.NDArray[Any]]
"""Contiguous ones of a launch's buffers by their positions, which take the results."""


def read_host_arguments(
    values: Sequence[Any], elements: Mapping[int, ElementType] | None = None
) -> tuple[tuple[Argument, ...], Arrays]:
    """Describe arguments that are NumPy values, and find the arrays among them."""
    held = []
    for one in values:
        is_structured = isinstance(one, np.ndarray) and bool(one.dtype.fields)
        if is_structured and one.flags.c_contiguous:  # as bytes, in the caller's own memory
            one = one.reshape(-1).view(np.uint8) if one.ndim else one[()]
        held.append(one)
    described = tuple(
        _describe(index, value, (elements or {}).get(index)) for index, value in enumerate(held)
    )
    arrays = {n: held[n] for n, one in enumerate(described) if isinstance(one, BufferArgument)}
    for (other, earlier), (index, array) in combinations(arrays.items(), 2):
        if np.may_share_memory(array, earlier):
            raise InputError(
                f"arguments {other} and {index} share memory; each device works on copies of "
                "its own, so give arrays that lie apart"
            )
    return described, arrays


def fill_buffers(problem: Problem, *, seed: int) -> Arrays:
    """Make the arrays that a problem's buffers begin as."""
    found = {}
    for index, argument in enumerate(problem.arguments):
        if isinstance(argument, ImageArgument | SamplerArgument):
            msg = f"argument {index}: devices cannot share images and samplers; give buffers"
            raise InputError(msg)
        if isinstance(argument, BufferArgument):
            found[index] = make_array(argument, seed=seed * 1000 + index)
    return found


def _describe(index: int, value: object, wanted: ElementType | None) -> Argument:
    if isinstance(value, LocalArgument):
        return value
    if isinstance(value, np.void):
        if wanted is not None and wanted.bytes == value.nbytes:
            lanes = np.frombuffer(value.tobytes(), dtype=wanted.dtype)[: wanted.lanes]
            return ScalarArgument(element=wanted, values=tuple(lanes.tolist()))
        return ScalarArgument(
            element=ElementType("uint8", value.nbytes), values=tuple(value.tobytes())
        )
    if isinstance(value, np.generic):
        return ScalarArgument(element=_element(index, value.dtype), values=(value.item(),))
    if not isinstance(value, np.ndarray):
        raise InputError(
            f"argument {index}: {type(value).__name__} given; give a NumPy array for a buffer, a "
            "NumPy scalar such as numpy.int32(7), or kernelcast's LocalArgument for local memory"
        )
    if not value.flags.c_contiguous:
        msg = f"argument {index}: the array is not contiguous; give numpy.ascontiguousarray(...)"
        raise InputError(msg)
    element = _element(index, value.dtype)
    if not value.flags.writeable and value.ndim == 1 and value.size in (2, 3, 4, 8, 16):
        element = ElementType(element.base, value.size)
        return ScalarArgument(element=element, values=tuple(value.tolist()))
    if not value.size:
        raise InputError(f"argument {index}: the array is empty; give at least one element")
    return BufferArgument(element=element, count=value.size)


def _element(index: int, dtype: np.dtype[Any]) -> ElementType:
    try:
        return ElementType.parse(dtype.name)
    except InputError as error:
        raise InputError(f"argument {index}: {error}") from error


WriteBack: TypeAlias = Callable[[Iterable[int]], None]


def copy_launch(
    kernel: "Kernel | Launch", ndrange: NDRange | Sequence[int], args: Sequence[Any]
) -> tuple[Kernel, NDRange | Sequence[int], tuple[tuple[Argument, ...], Arrays], WriteBack]:
    """Copy what buffers of pyopencl hold; the last result copies some of them back."""
    from kernelcast.launches.live import Launch, describe_live
    from kernelcast.launches.source_check import list_parameters
    from kernelcast.sampling.user_objects import copy_to_host, list_arguments

    if isinstance(kernel, Launch):
        problem = describe_live(kernel).problem
        kernel.queue.finish()
        args = list_arguments(kernel.args)
        kernel, ndrange = problem.kernel, problem.ndrange
    types = (one.type_name.rstrip("* ") for one in list_parameters(kernel) or ())
    named = {number: ElementType.from_opencl(one) for number, one in enumerate(types)}
    elements = {number: element for number, element in named.items() if element}
    values, write_back = copy_to_host(args, elements)
    return kernel, ndrange, read_host_arguments(values, elements), write_back


class Balancer:
    """Devices that share launches.

    Parameters
    ----------
    devices : sequence of str or DevicePlace
        Ids or beginnings of ids; all devices when left out. They are opened at once.
    settings : BalanceSettings, optional
        How to balance.
    processes : DeviceProcesses, optional
        Run the work, one for each place; child processes when left out.

    Examples
    --------
    >>> source = "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }"
    >>> with Balancer() as balancer:  # doctest: +SKIP
    ...     for array in arrays:
    ...         balancer.balance(Kernel(name="twice", source=source), array.shape, [array])

    Notes
    -----
    A context manager; at its end the devices are closed. Used by one thread at a time. A device
    that has failed for good (crashed, hung, could not be opened) takes no part in later launches.
    """

    def __init__(
        self,
        devices: Sequence[str | DevicePlace] = (),
        settings: BalanceSettings | None = None,
        *,
        processes: DeviceProcesses | None = None,
    ) -> None:
        places = [DevicePlace(device_id=d) if isinstance(d, str) else d for d in devices]
        self._places = places = places if processes else choose_places(places)
        self._settings = settings or BalanceSettings()
        self._devices = processes or DeviceProcesses(places, timeout_s=self._settings.timeout_s)
        self._names = [place.device_id for place in places]
        self._errors: dict[int, KernelcastError] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._devices.close()

    def _wait_open(self) -> None:
        """Wait until every device is open, or has failed to open, and idle."""
        while any(self._devices.owes(n) for n in range(len(self._places)) if n not in self._errors):
            heard = self._devices.receive()
            if heard is None:
                continue
            number, reply = heard
            if isinstance(reply, Failed):
                self._errors[number] = reply.error
            elif reply.device:
                self._names[number] = reply.device

    def balance(
        self,
        kernel: "Kernel | Launch",
        ndrange: NDRange | Sequence[int] = (),
        args: Sequence[Any] = (),
        *,
        estimates: Mapping[str, Estimate | Interval] | None = None,
        settings: BalanceSettings | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> BalanceReport:
        """Run a launch over the devices; arrays and buffers among the arguments take the results.

        Parameters
        ----------
        kernel, ndrange, args, estimates
            As of `balance`.
        settings : BalanceSettings, optional
            Used instead of the balancer's own.

        Raises
        ------
        InputError
            If the launch may not be split, or no device takes it.
        DeviceError
            If no device is left to finish it. The arrays hold then what they held before.
        """
        write_back: WriteBack | None = None
        if "pyopencl" in sys.modules:  # without which there are no objects of it
            kernel, ndrange, found, write_back = copy_launch(kernel, ndrange, args)
        else:
            found = read_host_arguments(args)
        if not isinstance(kernel, Kernel):
            msg = f"kernel: {type(kernel).__name__} given; give a kernelcast.Kernel or a Launch"
            raise InputError(msg)
        if not isinstance(ndrange, NDRange):
            ndrange = NDRange(global_size=tuple(ndrange))
        described, arrays = found
        problem = Problem(name=kernel.name, kernel=kernel, ndrange=ndrange, arguments=described)
        return self.run(
            problem, arrays, write_back, estimates=estimates, settings=settings, report=report
        )

    def run(
        self,
        problem: Problem,
        arrays: Arrays,
        write_back: WriteBack | None = None,
        *,
        estimates: Mapping[str, Estimate | Interval] | None = None,
        settings: BalanceSettings | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> BalanceReport:
        """Run a described launch; `write_back` is told which arrays have taken results."""
        started_s, rules = time.monotonic(), settings or self._settings
        if rules.fixed_shares and len(rules.fixed_shares) != len(self._places):
            msg = f"{len(rules.fixed_shares)} shares given for {len(self._places)} devices"
            raise InputError(msg)
        ndrange, notes = choose_local_size(problem.ndrange, read_facts(problem.kernel))
        problem = replace(problem, ndrange=ndrange)
        report("analysing the kernel")
        safety = choose_split(problem, rules, unit=max(place.concurrency for place in self._places))
        is_even, weights = weigh_slabs(problem, safety.space)
        self._wait_open()
        if len(self._errors) == len(self._places):
            raise join_errors(list(self._errors.values()))
        memory = self._devices.memory
        buffers = LaunchBuffers(memory, arrays, safety, len(self._places))
        prepare = Prepare(
            problem=problem,
            buffers=buffers.places,
            memory_bytes=memory.size,
            in_place=buffers.in_place,
        )
        count, fixed = safety.space.count, rules.fixed_shares
        states = []
        for number, place in enumerate(self._places):
            alone = (estimates or {}).get(place.device_id)
            takes_part = number not in self._errors and (not fixed or fixed[number] > 0)
            alone = alone.expected if isinstance(alone, Estimate) else alone
            stage = Stage.PREPARING if takes_part else Stage.OUT
            anchor = number / max(1, len(self._places) - 1)
            states.append(DeviceState(number, anchor, count, alone, stage))
        queue = WorkQueue(count, weights, is_even=is_even)
        scheduler = Scheduler(
            self._devices, prepare, buffers, safety.space, queue, states, rules, report
        )
        try:
            scheduler.run()
        finally:
            for number, state in enumerate(states):
                if state.error is not None and state.is_gone:
                    self._errors[number] = state.error
        merging_s = self._devices.now_s()
        report("merging results")
        handed = [n for n, one in enumerate(states) if one.collected.any()]
        for index, conflicts in buffers.merge(handed).items():
            if conflicts:
                raise InputError(
                    f"argument {index}: {conflicts} elements were written by work-groups on "
                    "different devices, with different values: the result depends on their order. "
                    "The arrays are as they were; run the kernel on one device"
                )
        changed = buffers.take(handed)
        for number in range(len(self._places)):
            if number not in self._errors:  # they drop their buffers; nothing waits for that
                self._devices.send(number, None)
        ended_s = time.monotonic()
        if write_back is not None:
            write_back(changed)
        times_s = (started_s, merging_s, ended_s)
        return self._make_report(problem.kernel.name, safety, scheduler, times_s, notes)

    def _make_report(
        self,
        kernel: str,
        safety: SplitSafety,
        scheduler: Scheduler,
        times_s: tuple[float, float, float],
        notes: Sequence[str],
    ) -> BalanceReport:
        """Report a launch; the times are the host's when it began, began to merge, and was done."""
        space, (started_s, merging_s, ended_s) = safety.space, times_s
        first_s = scheduler.first_s or merging_s
        last_s = max(scheduler.last_s, first_s)
        shares, left_out = [], []
        devices = zip(self._places, self._names, scheduler.states, strict=True)
        for number, (place, name, state) in enumerate(devices):
            done = space.work_groups(spans_of(state.owned.nonzero()[0]))
            failure = state.error or self._errors.get(number)
            shares.append(DeviceShare(
                device_id=place.device_id, device=name, cores=place.cores, work_groups=done,
                share=done / space.ndrange.work_group_count,
                failure="" if failure is None else str(failure),
                **pick(state, "estimated_share", "real_s", estimated_s="estimate.seconds",
                       low_s="estimate.low", high_s="estimate.high"),
            ))  # fmt: skip
            if state.is_left_out:
                left_out.append(f"{name}: left out, too slow to be of use")
        merging = Bar(
            device=len(shares), activity=Activity.MERGE, start_s=merging_s, end_s=ended_s
        )  # the host
        end_s = scheduler.estimated_end_s
        return BalanceReport(
            kernel=kernel, space=space, merges=dict(safety.rules), shares=tuple(shares),
            bars=tuple(
                replace(bar, start_s=bar.start_s - started_s, end_s=bar.end_s - started_s)
                for bar in (*scheduler.bars, merging)
            ),
            estimated_s=None if end_s is None else max(0.0, end_s - first_s),
            real_s=last_s - first_s, prepare_s=first_s - started_s,
            merge_s=ended_s - merging_s, total_s=ended_s - started_s, notes=(*notes, *left_out),
        )  # fmt: skip


def weigh_slabs(problem: Problem, space: SlabSpace) -> tuple[bool, FloatArray | None]:
    """Tell whether all work-groups surely do the same, and how work is spread if they do not."""
    plan = plan_by_source(SamplingPlan(), problem)
    if not (plan.is_known_even and plan.places):
        return plan.is_known_even, None
    # The work of 32 slabs is counted from the source.
    slabs = np.unique(np.linspace(0, space.count - 1, 32).round().astype(int)).tolist()
    boxes = [space.box((slab, slab + 1)) for slab in slabs]
    found = weigh_boxes(problem, boxes)
    if found is None:
        return False, None
    # Work-groups that do next to nothing still start and end.
    weights = np.interp(np.arange(space.count), slabs, np.maximum(found, 0.02))
    return False, np.asarray(weights * (space.count / weights.sum()), dtype=np.float64)


_ENOUGH_LAYERS = 16


@lru_cache(maxsize=64)
def choose_split(problem: Problem, settings: BalanceSettings, *, unit: int = 1) -> SplitSafety:
    model = model_kernel(problem)
    refuse_overruns(problem)
    found: list[SplitSafety] = []
    # Dimensions with enough work-groups come first, slowest first, then others by their number.
    counts = problem.ndrange.group_counts
    slowest_first = list(range(problem.ndrange.dimensions))[::-1]
    enough = [axis for axis in slowest_first if counts[axis] >= _ENOUGH_LAYERS]
    others = sorted(set(slowest_first) - set(enough), key=lambda axis: -counts[axis])
    for axis in [axis for axis in (*enough, *others) if counts[axis] > 1] or [0]:
        space = cut_axis(problem.ndrange, axis, settings.most_slabs, unit)
        one = assess_split(
            model.facts, space, model.scalars, model.buffers,
            assumes_independence=settings.assumes_independence,
        )  # fmt: skip
        if one.is_proven:
            return one
        found.append(one)
    allowed = [one for one in found if not one.refusals]
    if not allowed:
        reasons = "; ".join(found[0].refusals[:3])
        raise InputError(
            f"kernel {problem.kernel.name} is not split over devices: {reasons}. Run it on one "
            "device, or vouch that no work-group reads what another one writes (--independent)"
        )
    return allowed[0]


def cut_axis(ndrange: NDRange, axis: int, most_slabs: int, unit: int = 1) -> SlabSpace:
    layers = ndrange.group_counts[axis]
    per_layer = ndrange.work_group_count // layers
    thickness = -(-layers // most_slabs)
    step = unit // math.gcd(unit, per_layer)
    rounded = -(-thickness // step) * step
    # A small index space is rather cut finely than into multiples.
    if layers // rounded >= min(_ENOUGH_LAYERS, layers):
        thickness = rounded
    return SlabSpace(ndrange=ndrange, axis=axis, thickness=thickness)


def balance(
    kernel: "Kernel | Launch",
    ndrange: NDRange | Sequence[int] = (),
    args: Sequence[Any] = (),
    devices: Sequence[str | DevicePlace] = (),
    *,
    estimates: Mapping[str, Estimate | Interval] | None = None,
    settings: BalanceSettings | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> BalanceReport:
    """Run one kernel over several devices, so that all finish at about the same time.

    All devices are opened and build the kernel first. Most of the work is divided by estimates,
    the rest by the speeds that are measured meanwhile. A device without an estimate runs small
    parts first, which tell its speed and count as done.

    Parameters
    ----------
    kernel : Kernel or Launch
        Name, source, build options; or a launch of pyopencl objects, for which `ndrange` and `args`
        are left out.
    ndrange : NDRange or sequence of int
        The index space, or its global size alone.
    args : sequence
        The kernel's arguments in order: NumPy arrays, pyopencl's buffers or arrays, which take the
        results; NumPy scalars; `LocalArgument` or `pyopencl.LocalMemory` for local memory. Finish
        what your queues do to buffers before.
    devices : sequence of str or DevicePlace
        Ids or beginnings of ids; all devices when left out. CPU devices share the machine's cores
        evenly unless a `DevicePlace` says which each shall have.
    estimates : mapping of str to Estimate or Interval, optional
        What the whole launch takes on each device alone, by the device's id, such as
        `Predictor.estimate` tells.
    settings : BalanceSettings, optional
        How to balance.
    report : callable, optional
        Is told of each stage.

    Returns
    -------
    BalanceReport
        Shares, times as estimated and as they were, the timeline.

    Raises
    ------
    InputError
        If the kernel may not be split (atomic operations on global memory, work-groups that read
        what others write), or no device takes it.
    DeviceError
        If no device is left to finish. Then, and after every other error, arrays and buffers hold
        what they held before.
    """
    report("looking for devices")
    with Balancer(devices, settings) as balancer:
        return balancer.balance(kernel, ndrange, args, estimates=estimates, report=report)


def choose_places(devices: Sequence[str | DevicePlace]) -> list[DevicePlace]:
    known = {one.id: one for one in list_descriptions()}
    wanted = [
        one if isinstance(one, DevicePlace) else DevicePlace(device_id=one)
        for one in devices or known
    ]
    found = [replace(one, device_id=match_device_id(one.device_id, known)) for one in wanted]
    places = []
    for one in share_cores(found, known):
        units = len(one.cores) or one.compute_units or known[one.device_id].compute_units
        places.append(replace(one, concurrency=max(1, units)))
    return places


def share_cores(
    places: Sequence[DevicePlace],
    descriptions: Mapping[str, DeviceDescription],
    available: Sequence[int] | None = None,
) -> list[DevicePlace]:
    """Divide the cores that no place has been given among CPU devices without any."""
    if available is None:  # none where processes cannot be bound to cores
        available = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
    taken = {core for one in places for core in one.cores}
    free = [core for core in available if core not in taken]
    is_cpu = [descriptions[one.device_id].kind is DeviceKind.CPU for one in places]
    bare = [n for n, one in enumerate(places) if is_cpu[n] and not one.cores]
    if sum(is_cpu) < 2 or not bare or len(free) < len(bare):
        return list(places)
    given = list(places)
    for place, number in enumerate(bare):
        first, stop = (len(free) * end // len(bare) for end in (place, place + 1))
        given[number] = replace(given[number], cores=tuple(free[first:stop]))
    return given
