"""Where the times of an export come from: estimates, observations, times of the caller's own."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

from kernelcast.launches.devices import choose_devices
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.linear import fit_linear, make_interval
from kernelcast.predictor.answering.launch_history import LaunchHistory, see
from kernelcast.predictor.estimates import estimate_on_devices
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Interval
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.problem import digest_arguments
from kernelcast.records.samples import SampleRun, TimedLaunch
from kernelcast.scheduling.starpu.codelets import Wanted, Worker, parse_worker
from kernelcast.scheduling.starpu.models import ExpectedTime
from kernelcast.training_data.store import Selection, Store

TimeSource = Callable[[Wanted], ExpectedTime | None]
"""Tells a time; None where it knows none."""


def read_estimates(paths: Sequence[Path]) -> TimeSource:
    """Read what ``kernelcast estimate --json`` has written."""
    answers: list[Mapping[str, Any]] = []
    for path in paths:
        content = read_list(path, "estimates")
        if not all("kernel" in one and "device_id" in one for one in content):
            msg = f"{path}: holds no estimates; give what `kernelcast estimate --json` prints"
            raise InputError(msg)
        answers += content
    used: dict[int, str] = {}

    def find(wanted: Wanted) -> ExpectedTime | None:
        problem = wanted.problem
        if problem is None:
            return None
        found = [
            one
            for one in answers
            if one["kernel"] == problem.kernel.name
            and one.get("problem", problem.name) == problem.name
            and one.get("global_size") == list(problem.ndrange.global_size)
            and str(one["device_id"]).startswith(wanted.device_id)
        ]
        if not found:
            return None
        _refuse_several(wanted, "estimates", {str(one["device_id"]) for one in found})
        answer = found[-1]
        other = used.setdefault(id(answer), wanted.size)
        if other != wanted.size:
            raise InputError(
                f"{wanted.label}: the estimate for {other} has the same index space, so files of "
                "estimates cannot tell the two apart; let the export estimate, without --estimates"
            )
        numbers = {key: float(answer[key]) for key in ("seconds", "low", "high", "coverage")}
        return expect(Interval(**numbers), str(answer["tier"]), str(answer["device_id"]))

    return find


def recall_observed(store: Store) -> TimeSource:
    """Have what is believed of observations of the very launch, whatever the driver's version."""

    def find(wanted: Wanted) -> ExpectedTime | None:
        problem = wanted.problem
        if problem is None:
            return None
        selection = Selection(
            kernel_digests=(problem.kernel.digest,),
            devices=(wanted.device_id,) if wanted.device_id else (),
            without_flags=frozenset({ObservationFlag.CONTAMINATED}),
        )
        arguments = digest_arguments(problem.arguments, seed=0)  # contents of the usual seed
        asked = problem.ndrange
        found = []
        for one in store.find(selection):
            space = one.launch.ndrange
            if space is not None and one.launch.arguments_digest == arguments:
                is_local = asked.local_size is None or space.local_size == asked.local_size
                if space.global_size == asked.global_size and is_local:
                    found.append(one)
        if not found:
            return None
        devices = {one.launch.device.id for one in found}
        _refuse_several(wanted, "observations", devices)
        history = LaunchHistory()
        for one in sorted(found, key=lambda one: (one.measured_at is not None, one.measured_at)):
            history.add(see(one))
        interval = history.answer(DEFAULT_COVERAGE)
        return None if interval is None else expect(interval, "store", devices.pop())

    return find


def _refuse_several(wanted: Wanted, what: str, devices: Collection[str]) -> None:
    if len(devices) > 1:
        names = ", ".join(sorted(devices))
        msg = f"{wanted.label}: {what} of several devices ({names}); name one by `device`"
        raise InputError(msg)


def read_times(paths: Sequence[Path]) -> TimeSource:
    """Read times of functions that are no OpenCL kernels: measured samples, or plain seconds."""
    times: dict[tuple[str, Worker, frozenset[tuple[str, float]]], ExpectedTime] = {}
    for path in paths:
        for number, one in enumerate(read_list(path, "times")):
            try:
                key = (
                    str(one["codelet"]),
                    parse_worker(str(one["worker"])),
                    _freeze(one["parameters"]),
                )
                if "samples" in one:
                    interval = extrapolate(
                        [
                            (int(s["first"]), int(s["units"]), float(s["seconds"]))
                            for s in one["samples"]
                        ],
                        units=int(one["units"]),
                    )
                    times[key] = expect(interval, "sampled")
                else:
                    times[key] = ExpectedTime(
                        seconds=float(one["seconds"]),
                        deviation_s=float(one.get("deviation_seconds", 0.0)),
                        origin="given",
                    )
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"{path}: object {number} cannot be used ({error!r}); expected codelet, "
                    "worker, parameters, and seconds or units with samples"
                ) from error
    return lambda wanted: times.get((wanted.symbol, wanted.worker, _freeze(wanted.parameters)))


def estimate_now(settings: EstimateSettings, *, timeout_s: float) -> TimeSource:
    """Have a few work-groups of each kernel run on its device."""

    @cache
    def choose(device_id: str) -> list[DeviceDescription]:
        return choose_devices((device_id,) if device_id else ())

    def find(wanted: Wanted) -> ExpectedTime | None:
        if wanted.problem is None:
            return None
        devices = choose(wanted.device_id)
        if len(devices) != 1:
            names = ", ".join(one.id for one in devices)
            raise InputError(
                f"{wanted.label}: several devices could be meant ({names}); name one by "
                "`device` in the codelet file or by --device"
            )
        (found,) = estimate_on_devices(
            wanted.problem, devices, settings=settings, timeout_s=timeout_s
        )
        estimate = found.answer.estimate
        if estimate is None:
            # Exactly one of the two is there, see `DeviceAnswer`.
            raise found.answer.error or InputError(wanted.label)
        return expect(estimate.interval, str(estimate.tier), estimate.device_id)

    return find


def extrapolate(samples: Sequence[tuple[int, int, float]], *, units: int) -> Interval:
    """Predict the time of a loop from first pass, passes and seconds of stretches of it."""
    if not samples or units < 1:
        raise InputError(f"{len(samples)} samples of {units} passes: expected at least one of each")
    for first, count, _ in samples:
        if first < 0 or count < 1 or first + count > units:
            raise InputError(f"sample of passes {first} to {first + count}: the loop has {units}")
    try:
        run = SampleRun(
            kernel_digest="",
            device_id="cpu",
            ndrange=NDRange(global_size=(units,), local_size=(1,)),
            launches=tuple(
                TimedLaunch(
                    box=GroupBox(start=(first,), shape=(count,)),
                    window=number,
                    duration_s=seconds,
                )
                for number, (first, count, seconds) in enumerate(samples)
            ),
            launch_overhead_s=0.0,
            is_even=True,
        )
    except KernelcastError as error:
        raise InputError(f"samples of a loop: {error}") from error
    return make_interval(fit_linear(run), coverage=DEFAULT_COVERAGE)


def expect(interval: Interval, origin: str, device_id: str = "") -> ExpectedTime:
    """Expect the time of an interval, which holds the middle of a normal distribution."""
    width = NormalDist().inv_cdf((1 + interval.coverage) / 2)
    return ExpectedTime(
        seconds=interval.seconds,
        deviation_s=(interval.high - interval.low) / 2 / width,
        origin=origin,
        device_id=device_id,
    )


def read_list(path: Path, what: str) -> list[Mapping[str, Any]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: the {what} cannot be read: {error}") from error
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        raise InputError(f"{path}: holds no {what}; expected a JSON list of objects")
    return content


def _freeze(parameters: Mapping[str, Any]) -> frozenset[tuple[str, float]]:
    return frozenset((str(name), float(value)) for name, value in parameters.items())
