"""Times behind an observation: whole runs, sampled launches, and the machine's state meanwhile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Measurement
from kernelcast.records.samples import TimedLaunch


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    median_s: float
    durations_s: tuple[float, ...] = ()
    """Each run, in seconds, in the order they ran; empty where only a summary is known."""
    noise: float | None = None
    """Half the 10-90 % spread over the median; None where it is not known, as of a single run."""
    run_count: int = 1
    started_s: tuple[float, ...] = ()
    """When each run began, in seconds since 1970; empty where that is not known."""

    def __post_init__(self) -> None:
        for seconds in (self.median_s, *self.durations_s):
            if not 0 < seconds < math.inf:
                raise InputError(f"observation: a run took {seconds} s; expected a positive time")
        if self.noise is not None and not 0 <= self.noise < math.inf:
            msg = f"observation: the noise is {self.noise}; expected a share of at least 0"
            raise InputError(msg)
        if self.run_count < 1 or (self.durations_s and len(self.durations_s) != self.run_count):
            raise InputError(
                f"observation: {self.run_count} runs and {len(self.durations_s)} times; expected "
                "one time each, or none where only their median is known"
            )
        if self.started_s and len(self.started_s) != self.run_count:
            raise InputError(
                f"observation: {self.run_count} runs and {len(self.started_s)} times at which they "
                "began; expected one each, or none where they are not known"
            )


def summarise_runs(durations_s: Sequence[float], started_s: Sequence[float] = ()) -> RunTimes:
    """Make the record of whole runs from each run's time."""
    if not durations_s:
        raise InputError("observation: there are no runs; time the whole kernel at least once")
    times = tuple(map(float, durations_s))
    if not min(times) > 0:
        raise InputError(f"observation: a run took {min(times)} s; expected a positive time")
    measured = Measurement(durations_s=times)
    return RunTimes(
        median_s=measured.seconds,
        durations_s=times,
        noise=measured.noise if len(times) > 1 else None,
        run_count=len(times),
        started_s=tuple(map(float, started_s)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSet:
    """Launches of a few work-groups from which one estimate could be made."""

    multiple: int
    """k: the sampling points are k and k + 1 times the least launch that saturates the device (the
    paper's Fig. 15); 0 where the sizes followed another rule, as a time budget."""
    window_set: int
    """Which of several choices of places in the index space."""
    launches: tuple[TimedLaunch, ...]
    launch_overhead_s: float
    """Time of a launch that does nothing, in seconds."""
    is_even: bool
    linear_s: float | None = None
    """The linear model's time of the whole launch, in seconds; None where it has no answer."""
    overhead_s: float = 0.0
    """Host time of everything but the launches: copies of buffers, warm-up, arithmetic."""
    at_s: float | None = None
    """When the first of them ran, in seconds since 1970; None where that is not known."""
    imbalance: float = 1.0
    """Of cores that get parts beforehand, see `SampleRun`."""

    def __post_init__(self) -> None:
        if not self.launches:
            raise InputError("observation: a sample set without launches; leave the set out")
        if min(self.multiple, self.window_set) < 0:
            raise InputError(
                f"observation: sample set {self.window_set} at multiple {self.multiple}; expected "
                "numbers of at least 0"
            )
        for seconds in (self.launch_overhead_s, self.overhead_s, self.linear_s or 0.0):
            if not 0 <= seconds < math.inf:
                msg = f"observation: a sample set holds {seconds} s; expected at least 0"
                raise InputError(msg)

    @property
    def sampling_s(self) -> float:
        """Device time of the launches: the cost of the sample, in seconds."""
        return sum(launch.duration_s for launch in self.launches)

    @property
    def work_groups(self) -> tuple[int, ...]:
        return tuple(launch.box.work_group_count for launch in self.launches)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """How busy and how fast the machine was; None is what could not be read."""

    load: float | None = None
    """Processes that wanted to run, averaged over the last minute."""
    governor: str | None = None
    """Rule of the processor's clock, such as ``performance``."""
    temperature_celsius: float | None = None
    """Of the warmest sensor of the device or processor."""
    clock_hz: float | None = None
    others_busy: float | None = None
    """Processors that other processes kept busy meanwhile, on average."""
    stolen: float | None = None
    """Processors that the host of a virtual machine gave to others meanwhile, on average."""
    slowdown: float | None = None
    """How many times as long as the times that are kept, which are those alone, the launch took
    beside other programs."""
