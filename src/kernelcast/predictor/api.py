"""What Python programs call: predictions for their own pyopencl objects and for problem files."""

import threading
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from kernelcast.launches.live import Launch
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.predictor.answering.launch_request import check_device_ids, refuse
from kernelcast.predictor.estimates import estimate_on_devices, find_devices
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.problem import LaunchIdentity
from kernelcast.sampling.plan import DEFAULT_BUDGET, SamplingPlan
from kernelcast.sampling.user_objects import UserDevice, UserEvent, UserKernel, UserQueue

_USUAL = (DEFAULT_BUDGET, DEFAULT_COVERAGE, 0, False)


def estimate(  # noqa: PLR0913 - a launch has that many parts
    kernel: UserKernel,
    global_size: Sequence[int],
    local_size: Sequence[int] | None,
    args: Sequence[Any],
    *,
    queue: UserQueue,
    global_offset: Sequence[int] | None = None,
    budget: float = DEFAULT_BUDGET,
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
    May be called from several threads; one measurement at a time runs on a device. The same launch
    is answered again from memory, unless contents have changed that decide what its work-items do.
    Learned models and earlier observations count, see `kernelcast.Predictor` and `observe`; whole
    runs are measured (`measure`) each time.
    """
    launch = Launch(
        kernel,
        global_size,
        local_size,
        args,
        queue=queue,
        global_offset=global_offset,
        source=source,
        build_options=build_options,
    )
    numbers: dict[str, object] = {"budget": budget, "coverage": coverage, "seed": seed}
    for name, value in numbers.items():
        if not isinstance(value, Real):
            refuse(name, value, "a number")
    predictor = _find_predictor(budget, coverage, int(seed), measure)
    return predictor.estimate(launch, anew=measure)


def observe(
    launch: Estimate | LaunchIdentity | Launch,
    measured_s: float | UserEvent | Sequence[UserEvent],
    *,
    is_first: bool | None = None,
    slowdown: float | None = None,
) -> frozenset[ObservationFlag]:
    """Tell how long a launch has really taken: later answers of `estimate` know it.

    Parameters
    ----------
    launch, measured_s, is_first, slowdown
        As of `kernelcast.Predictor.observe`: seconds, or the launch's event.

    Raises
    ------
    InputError, EventTimesError, ObservationLostError
        As there.
    """
    predictor = _find_predictor(*_USUAL)
    flags = predictor.observe(launch, measured_s, is_first=is_first, slowdown=slowdown)
    predictor.flush()
    with _lock:
        _predictors.clear()  # memories of the others know nothing of it
        _predictors[_USUAL] = predictor
    return flags


def device_id(device: UserDevice) -> str:
    """Name a pyopencl device as predictors, files and the command line do.

    Parameters
    ----------
    device : pyopencl.Device
        Such as `queue.device`.

    Returns
    -------
    str
        Its stable id, which `kernelcast devices` lists, too.
    """
    from kernelcast.sampling.discovery import describe_device

    return describe_device(device).id


_predictors: LRUCache[tuple[float, float, int, bool], Predictor] = LRUCache(16)
_lock = threading.Lock()


def _find_predictor(budget: float, coverage: float, seed: int, measure: bool) -> Predictor:
    """Give the predictor of these settings; launches that were answered are remembered there."""
    key = (budget, coverage, seed, measure)
    plan = SamplingPlan(budget=budget, seed=seed)
    settings = EstimateSettings(plan=plan, coverage=coverage, seed=seed, measure=measure)
    with _lock:
        if key not in _predictors:
            _predictors[key] = Predictor(options=PredictorOptions(settings=settings))
        return _predictors[key]


def estimate_problem(
    path: str | Path,
    *,
    devices: Sequence[str] | None = None,
    parameters: Mapping[str, int | float] | None = None,
    settings: EstimateSettings | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    report: Callable[[str], None] = lambda _: None,
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
    report : callable, optional
        Is told what is being done; the logger ``kernelcast.progress`` is told as well (DEBUG).

    Returns
    -------
    list of DeviceAnswer
        One per device: an estimate, or the error that kept it from answering.

    Raises
    ------
    InputError
        If the problem cannot be used on any device.
    """
    given: object = path
    if not isinstance(given, str | Path):
        wanted = "the path of a YAML file; Predictor().estimate(problem, device) takes a Problem"
        refuse("problem file", given, wanted)
    check_device_ids(devices)
    problem = read_problem(path, parameters=parameters)
    report("looking for devices")
    found = estimate_on_devices(
        problem,
        find_devices(devices or ()),
        settings=settings or EstimateSettings(),
        timeout_s=timeout_s,
        report=report,
    )
    return [answer for answer, _ in found]
