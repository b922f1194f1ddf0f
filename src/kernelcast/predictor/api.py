"""What Python programs call: predictions for their own pyopencl objects and for problem files."""

import operator
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kernelcast.features.access import infer_accesses
from kernelcast.launches.bounds_check import refuse_overruns
from kernelcast.launches.estimation import estimate_launch
from kernelcast.launches.persistence_check import refuse_persistent
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import (
    DEFAULT_COVERAGE,
    DEFAULT_TIMEOUT_S,
    EstimateSettings,
    make_settings,
)
from kernelcast.launches.weighing import describe_values, plan_by_source, weigh_run
from kernelcast.predictor.estimates import estimate_problem as iterate_answers
from kernelcast.predictor.given import check_device_ids, check_number, check_problem_path
from kernelcast.records.errors import NDRangeError
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.user_arguments import (
    choose_user_ndrange,
    hold_buffer,
    list_buffer_bytes,
    prepare_user_launch,
    read_arguments,
)
from kernelcast.sampling.user_objects import (
    UserKernel,
    UserQueue,
    check_objects,
    read_kernel,
    session_of,
)


def estimate(  # noqa: PLR0913 - a launch has that many parts
    kernel: UserKernel,
    global_size: Sequence[int],
    local_size: Sequence[int] | None,
    args: Sequence[Any],
    *,
    queue: UserQueue,
    global_offset: Sequence[int] | None = None,
    budget: float = 0.02,
    coverage: float = DEFAULT_COVERAGE,
    measure: bool = False,
    seed: int = 0,
    source: str | None = None,
    build_options: str | Sequence[str] | None = None,
) -> Estimate:
    """Predict how long a launch of your own kernel will take, by running a small part of it.

    Parameters
    ----------
    kernel : pyopencl.Kernel
        The kernel; its source and build options are taken from its program.
    global_size, local_size : sequence of int
        As for `pyopencl.enqueue_nd_range_kernel`; a `local_size` of None lets the device choose.
    args : sequence
        The kernel's arguments in order: buffers, pyopencl's arrays, NumPy scalars,
        `pyopencl.LocalMemory`.
    queue : pyopencl.CommandQueue
        A queue on the device; finish what it runs first, or it will be timed too.
    global_offset : sequence of int, optional
        First global id per dimension.
    budget : float
        Share of the predicted time that sampling may cost.
    coverage : float
        Share of true times that the interval shall hold.
    measure : bool
        Whether to time whole runs as well; they too leave the buffers as they are.
    seed : int
        Seed of the places that are sampled.
    source, build_options : str, sequence of str, optional
        Used instead of the program's own.

    Returns
    -------
    Estimate
        All buffers hold afterwards what they held before, also after an error or Ctrl-C: the
        sampled work-groups write to copies.

    Raises
    ------
    InputError
        If kernel, queue, sizes and arguments do not fit together, or work-groups fetch their work.
    OverrunError
        If the source proves that the launch leaves a buffer; nothing is run then.
    DeviceError
        If the device cannot hold or run the launch.

    Notes
    -----
    May be called from several threads; one measurement at a time runs on a device.
    """
    started_s = time.perf_counter()
    settings = _read_settings(budget, coverage, seed, measure=measure)
    given = NDRange(
        global_size=_read_sizes("global size", global_size),
        local_size=None if local_size is None else _read_sizes("local size", local_size),
        global_offset=() if global_offset is None else _read_sizes("global offset", global_offset),
    )
    check_objects(kernel, queue)
    arguments = read_arguments(args)
    session = session_of(queue)
    described = read_kernel(kernel, session.device, source=source, options=build_options)
    refuse_persistent(described)
    inferred = infer_accesses(described, len(arguments))
    with session.lock:
        ndrange = choose_user_ndrange(session, described, given, arguments)
        known = describe_values(arguments, partial(hold_buffer, session))
        refuse_overruns(described, ndrange, known, list_buffer_bytes(arguments))
        plan = plan_by_source(settings.plan, described, ndrange, known)
        with prepare_user_launch(
            session, described, ndrange, arguments, inferred=inferred
        ) as launch:
            return estimate_launch(
                launch,
                described.name,
                replace(settings, plan=plan),
                weigh=partial(weigh_run, kernel=described, arguments=known),
                started_s=started_s,
            )


def _read_settings(budget: float, coverage: float, seed: int, *, measure: bool) -> EstimateSettings:
    for name, value in (("budget", budget), ("coverage", coverage), ("seed", seed)):
        check_number(name, value)
    settings = make_settings(budget=budget, coverage=coverage, measured_runs=None, seed=int(seed))
    return replace(settings, measure=measure)


def _read_sizes(what: str, sizes: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(operator.index(one) for one in sizes)
    except TypeError:
        msg = f"{what} {sizes!r}: give a sequence of whole numbers, one per dimension"
        raise NDRangeError(msg) from None


def estimate_problem(
    path: str | Path,
    *,
    devices: Sequence[str] | None = None,
    parameters: Mapping[str, int | float] | None = None,
    settings: EstimateSettings | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> list[DeviceAnswer]:
    """Predict a problem file on the devices of this machine, each in a process of its own.

    Parameters
    ----------
    path : str or Path
        The problem file.
    devices : sequence of str, optional
        Ids, or their beginnings; all devices when left out.
    parameters : mapping of str to number, optional
        Values that replace those of the file's `parameters`.
    settings : EstimateSettings, optional
        Budget, coverage, measurement.
    timeout_s : float
        A device that has not answered after so many seconds is given up.

    Returns
    -------
    list of DeviceAnswer
        One per device: an estimate, or the error that kept it from answering.

    Raises
    ------
    InputError
        If the problem cannot be used on any device.
    """
    check_problem_path(path)
    check_device_ids(devices)
    return list(
        iterate_answers(
            read_problem(path, parameters=parameters),
            device_ids=devices,
            settings=settings or EstimateSettings(),
            timeout_s=timeout_s,
        )
    )
