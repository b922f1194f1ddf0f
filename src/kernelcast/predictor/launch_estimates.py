"""Answers that a scheduler compares: one launch on one device, with all that it costs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist

from kernelcast.records.arguments import Access, BufferArgument
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.machine import MachineDescription
from kernelcast.records.plain import pick
from kernelcast.records.problem import Problem

_NORMAL = NormalDist()
_QUANTILES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchEstimate:
    problem: str
    device_id: str
    estimate: Estimate | None = None
    error: KernelcastError | None = None
    compile_s: float | None = None
    launch_s: float | None = None
    """Time of a launch that does nothing, which is part of the kernel's time."""
    to_device_s: float | None = None
    from_device_s: float | None = None

    @property
    def kernel_s(self) -> float | None:
        """Time of the whole launch as the device is now, in seconds; None without an answer."""
        return None if self.estimate is None else self.estimate.expected.seconds

    @property
    def total_s(self) -> float | None:
        """Kernel and transfers, in seconds: what a repeat costs; None where a part is not known."""
        if self.kernel_s is None or self.to_device_s is None or self.from_device_s is None:
            return None
        return self.kernel_s + self.to_device_s + self.from_device_s

    def to_row(self) -> dict[str, object]:
        return {
            **pick(self, "problem", "device_id"),
            **({} if self.estimate is None else self.estimate.to_row()),
            **pick(self, "compile_s", "launch_s", "to_device_s", "from_device_s", "total_s"),
            "error_message": None if self.error is None else str(self.error),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where and when a launch, or a task, is expected to run."""

    device: str
    start_s: float
    end_s: float
    """In seconds from now."""
    confidence: float
    """Probability that it would end on no other device sooner."""


class Compared(StrEnum):
    WITH_TRANSFERS = "kernel and transfers"
    KERNEL_ALONE = "kernel alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class FastestLaunch:
    entry: LaunchEstimate
    compared: Compared
    unknown_transfers: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    confidence: float = 1.0

    @property
    def placement(self) -> Placement:
        return Placement(
            device=self.entry.device_id,
            start_s=0.0,
            end_s=self.seconds,
            confidence=self.confidence,
        )

    @property
    def seconds(self) -> float:
        known = self.entry.total_s if self.compared is Compared.WITH_TRANSFERS else None
        return known or self.entry.kernel_s or 0.0

    def __str__(self) -> str:
        notes = [f"by {self.compared}"]
        if self.unknown_transfers:
            notes.append(f"transfers are not known on {', '.join(self.unknown_transfers)}")
        if self.unanswered:
            notes.append(f"no answer from {', '.join(self.unanswered)}")
        return f"{self.entry.device_id} ({'; '.join(notes)})"


def estimate_transfers(
    problem: Problem, accesses: Sequence[Access | None], machine: MachineDescription | None
) -> tuple[float, float] | None:
    """Estimate how long a launch's buffers take to the device and back, each by a copy."""
    known = accesses or [getattr(one, "access", None) for one in problem.arguments]
    pairs = [
        (one.bytes, access or Access.READ_WRITE)
        for one, access in zip(problem.arguments, known, strict=True)
        if isinstance(one, BufferArgument)
    ]
    read = [size for size, access in pairs if access is not Access.WRITE]
    written = [size for size, access in pairs if access is not Access.READ]
    to_device_s = _sum(machine, "transfer_to_device", read)
    from_device_s = _sum(machine, "transfer_from_device", written)
    if to_device_s is None or from_device_s is None:
        return None
    return to_device_s, from_device_s


def _sum(machine: MachineDescription | None, way: str, sizes: Sequence[int]) -> float | None:
    if not sizes:
        return 0.0
    if machine is None:
        return None
    start = machine.costs.get(f"{way}_s")
    rate = machine.costs.get(f"{way}_bytes_per_s")
    if start is None or rate is None:
        return None
    return sum(start.value + size / rate.value for size in sizes)


def choose_fastest(entries: Sequence[LaunchEstimate]) -> FastestLaunch:
    names = list(dict.fromkeys(one.problem for one in entries))
    if len(names) > 1:
        msg = f"{', '.join(names)}: devices are compared by one launch; give entries of one problem"
        raise InputError(msg)
    answered = [one for one in entries if one.estimate is not None]
    unanswered = tuple(one.device_id for one in entries if one.estimate is None)
    if not answered:
        reasons = "; ".join(f"{one.device_id}: {one.error}" for one in entries) or "no entries"
        raise InputError(f"no device has an answer to compare ({reasons})")
    unknown = tuple(one.device_id for one in answered if one.total_s is None)
    compared = Compared.KERNEL_ALONE if unknown else Compared.WITH_TRANSFERS
    found = [
        FastestLaunch(
            entry=one, compared=compared, unknown_transfers=unknown, unanswered=unanswered
        )
        for one in answered
    ]
    best = min(found, key=lambda one: one.seconds)
    times = {
        one.entry.device_id: (
            one.entry.estimate.expected,
            one.seconds - one.entry.estimate.expected.seconds,
        )
        for one in found
        if one.entry.estimate is not None
    }
    return replace(best, confidence=find_confidence(times, best.entry.device_id))


def find_confidence(
    times: Mapping[str, tuple[float | Estimate | Interval, float]], chosen: str
) -> float:
    """Find the probability that the chosen one of several log-normal times, each with the seconds
    after which it begins, ends first."""
    laid = {name: (*read_time(time), start_s) for name, (time, start_s) in times.items()}
    seconds, sigma, begin_s = laid.pop(chosen)
    probability = 0.0
    for number in range(_QUANTILES):
        z = _NORMAL.inv_cdf((number + 0.5) / _QUANTILES)
        end_s = begin_s + seconds * math.exp(sigma * z)
        probability += math.prod(_exceed(end_s, *other) for other in laid.values()) / _QUANTILES
    return probability


def _exceed(end_s: float, seconds: float, sigma: float, start_s: float = 0.0) -> float:
    """Tell the probability that something ends later; one half where it surely ends then."""
    left_s = end_s - start_s
    if left_s <= 0:
        return 1.0
    gap = math.log(seconds / left_s)
    if sigma == 0:
        return 0.5 if gap == 0 else float(gap > 0)
    return _NORMAL.cdf(gap / sigma)


def compare_estimates(one: Estimate | Interval, other: Estimate | Interval) -> float:
    """Compute ``P(a < b) = Phi(log(b / a) / hypot(sigma_a, sigma_b))`` of log-normal times."""
    (one_s, deviation), (other_s, other_deviation) = read_time(one), read_time(other)
    return _exceed(one_s, other_s, math.hypot(deviation, other_deviation))


def read_time(time: float | Estimate | Interval) -> tuple[float, float]:
    """Read seconds, and the deviation of their logarithm, which is 0 of a time alone."""
    one = time.expected if isinstance(time, Estimate) else time
    if not isinstance(one, Interval):
        return one, 0.0
    return one.seconds, math.log(one.high / one.low) / 2 / _NORMAL.inv_cdf((1 + one.coverage) / 2)
