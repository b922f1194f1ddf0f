"""Where the times of an export come from: estimates, observations, times of the caller's own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Protocol

from kernelcast.records.errors import InputError
from kernelcast.records.launch_identity import digest_arguments
from kernelcast.records.observation import Observation
from kernelcast.records.problem import Problem
from kernelcast.scheduling.starpu.codelet_file import TaskSize
from kernelcast.scheduling.starpu.records import Worker, parse_worker
from kernelcast.scheduling.starpu.sampled_functions import extrapolate
from kernelcast.training_data.store import Selection, Store

_UNKNOWN_DEVIATION = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTime:
    """How long a task is expected to take."""

    seconds: float
    """Mean."""
    deviation_s: float
    """Standard deviation, in seconds; 0 where it is not known."""
    origin: str
    """Where it comes from: an estimate's tier, ``store``, ``sampled``, ``given``."""
    device_id: str = ""
    """OpenCL device it is of; empty for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which time is asked for."""

    symbol: str
    """The codelet."""
    worker: Worker
    """Where it runs."""
    size: TaskSize
    """The task's size."""
    device_id: str
    """OpenCL device's id or its beginning; empty for any."""
    problem: Problem | None
    """The kernel's launch; None for a function that is not OpenCL C."""

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"{self.symbol} on {self.worker} at {self.size.label}"


class TimeSource(Protocol):
    """Knows times of tasks."""

    def find(self, wanted: Wanted) -> ExpectedTime | None:
        """Give a time, or None where the source has none."""


class EstimateFiles:
    """What ``kernelcast estimate --json`` has written."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._answers: list[Mapping[str, Any]] = []
        for path in paths:
            content = read_list(path, "estimates")
            if not all("kernel" in one and "device_id" in one for one in content):
                msg = f"{path}: holds no estimates; give what `kernelcast estimate --json` prints"
                raise InputError(msg)
            self._answers += content
        self._used: dict[int, str] = {}

    def find(self, wanted: Wanted) -> ExpectedTime | None:
        """Give the estimate of the launch with this kernel and index space."""
        problem = wanted.problem
        if problem is None:
            return None
        space = list(problem.ndrange.global_size)
        found = [
            one
            for one in self._answers
            if one["kernel"] == problem.kernel.name
            and one.get("problem", problem.name) == problem.name
            and one.get("global_size") == space
            and str(one["device_id"]).startswith(wanted.device_id)
        ]
        if not found:
            return None
        if len({one["device_id"] for one in found}) > 1:
            names = ", ".join(sorted({str(one["device_id"]) for one in found}))
            msg = f"{wanted.label}: estimates of several devices ({names}); name one by `device`"
            raise InputError(msg)
        answer = found[-1]
        other = self._used.setdefault(id(answer), wanted.size.label)
        if other != wanted.size.label:
            msg = (
                f"{wanted.label}: the estimate for {other} has the same index space, so files of "
                "estimates cannot tell the two apart; let the export estimate, without --estimates"
            )
            raise InputError(msg)
        return _of_estimate(answer)


class StoredTimes:
    """Observations of the very launch.

    Parameters
    ----------
    store : Store
        Observations; those with random buffer contents count if they are of the usual seed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, wanted: Wanted) -> ExpectedTime | None:
        """Give the median over observations, whatever the driver's version."""
        problem = wanted.problem
        if problem is None:
            return None
        selection = Selection(
            kernel_digests=(problem.kernel.digest,),
            devices=(wanted.device_id,) if wanted.device_id else (),
        )
        arguments = digest_arguments(problem.arguments, seed=0)
        found = [
            one
            for one in self._store.find(selection)
            if one.launch.arguments_digest == arguments and _is_same_space(one, problem)
        ]
        if not found:
            return None
        devices = sorted({one.launch.device.id for one in found})
        if len(devices) > 1:
            msg = (
                f"{wanted.label}: observations of several devices ({', '.join(devices)}); name "
                "one by `device`"
            )
            raise InputError(msg)
        times = sorted(one.seconds for one in found)
        middle = times[len(times) // 2]
        noise = max((one.runs.noise or 0.0 for one in found), default=0.0)
        # Half the 10-90 % spread is 1.28 standard deviations of a normal.
        deviation = noise * middle / NormalDist().inv_cdf(0.9)
        return ExpectedTime(
            seconds=middle, deviation_s=deviation, origin="store", device_id=devices[0]
        )


class TimesFiles:
    """Times of functions that are no OpenCL kernels: measured samples, or plain seconds.

    Parameters
    ----------
    paths : sequence of Path
        JSON lists of objects ``{"codelet", "worker", "parameters"}`` with either ``seconds`` and
        perhaps ``deviation_seconds``, or ``units`` and ``samples``, a list of
        ``{"first", "units", "seconds"}``.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._times: dict[tuple[str, Worker, frozenset[tuple[str, float]]], ExpectedTime] = {}
        for path in paths:
            for number, one in enumerate(read_list(path, "times")):
                try:
                    key = (
                        str(one["codelet"]),
                        parse_worker(str(one["worker"])),
                        _freeze(one["parameters"]),
                    )
                    self._times[key] = _of_times(one)
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    msg = (
                        f"{path}: object {number} cannot be used ({error!r}); expected codelet, "
                        "worker, parameters, and seconds or units with samples"
                    )
                    raise InputError(msg) from error

    def find(self, wanted: Wanted) -> ExpectedTime | None:
        """Give the time of this codelet, worker and size."""
        return self._times.get((wanted.symbol, wanted.worker, _freeze(wanted.size.parameters)))


def deviation_of(low: float, high: float, coverage: float) -> float:
    """Give the standard deviation of a normal whose middle `coverage` lies between two ends.

    Examples
    --------
    >>> round(deviation_of(1 - 1.645, 1 + 1.645, 0.9), 3)
    1.0
    """
    return (high - low) / 2 / NormalDist().inv_cdf((1 + coverage) / 2)


def read_list(path: Path, what: str) -> list[Mapping[str, Any]]:
    """Read a JSON list of objects."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        msg = f"{path}: the {what} cannot be read: {error}"
        raise InputError(msg) from error
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        msg = f"{path}: holds no {what}; expected a JSON list of objects"
        raise InputError(msg)
    return content


def _of_estimate(answer: Mapping[str, Any]) -> ExpectedTime:
    low, high, coverage = (float(answer[key]) for key in ("low", "high", "coverage"))
    return ExpectedTime(
        seconds=float(answer["seconds"]),
        deviation_s=deviation_of(low, high, coverage),
        origin=str(answer["tier"]),
        device_id=str(answer["device_id"]),
    )


def _of_times(one: Mapping[str, Any]) -> ExpectedTime:
    if "samples" in one:
        interval = extrapolate(
            [(int(s["first"]), int(s["units"]), float(s["seconds"])) for s in one["samples"]],
            units=int(one["units"]),
        )
        return ExpectedTime(
            seconds=interval.seconds,
            deviation_s=deviation_of(interval.low, interval.high, interval.coverage),
            origin="sampled",
        )
    return ExpectedTime(
        seconds=float(one["seconds"]),
        deviation_s=float(one.get("deviation_seconds", _UNKNOWN_DEVIATION)),
        origin="given",
    )


def _is_same_space(one: Observation, problem: Problem) -> bool:
    observed, wanted = one.launch.ndrange, problem.ndrange
    if observed is None or observed.global_size != wanted.global_size:
        return False
    return wanted.local_size is None or observed.local_size == wanted.local_size


def _freeze(parameters: Mapping[str, Any]) -> frozenset[tuple[str, float]]:
    return frozenset((str(name), float(value)) for name, value in parameters.items())
