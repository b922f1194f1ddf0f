"""Recordings of samples, and a backend that answers from them without a device.

A recording keeps each box of work-groups that ran with its duration. The same planning code with
the same seed asks for the same boxes, so the whole pipeline can be repeated, tested and examined
far from the device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelcast.records.contention import Contention, combine_contention
from kernelcast.records.device import DeviceDescription, DispatchOrder, SaturationPoint
from kernelcast.records.errors import RecordingError
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import LaunchTime, clock_of
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.plan import SamplingPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one estimate saw of a device.

    Parameters
    ----------
    launch_overhead_s : float
        Time of an empty launch, in seconds.
    launches : tuple of (GroupBox, float)
        Boxes in the order they ran, with their durations in seconds.
    whole_s : tuple of float
        Durations of whole runs, in seconds.
    plan : SamplingPlan or None
        How much was sampled: a replay asks for the same places; None where it is not known.
    weights : tuple of float
        Work of each sampled launch's work-groups over the mean, in the order they were planned.
    facts : mapping or None
        What learned models were told beside samples, as JSON holds it; None where none asked.
    clocks_s : tuple of float or None
        Time of each launch by the clock, in seconds, where it is known beside that of the work; or
        nothing at all.
    contention : Contention or None
        What other programs left to the device meanwhile.
    """

    kernel_name: str
    kernel_digest: str
    device: DeviceDescription
    ndrange: NDRange
    saturation: SaturationPoint
    order: DispatchOrder
    launch_overhead_s: float
    launches: tuple[tuple[GroupBox, float], ...]
    whole_s: tuple[float, ...] = ()
    plan: SamplingPlan | None = None
    weights: tuple[float, ...] = ()
    facts: Mapping[str, Any] | None = None
    clocks_s: tuple[float | None, ...] = ()
    contention: Contention | None = None


class RecordingLaunch:
    """A `PreparedLaunch` that passes every call on and keeps what came back."""

    def __init__(self, launch: PreparedLaunch, kernel_name: str) -> None:
        self._launch = launch
        self._kernel_name = kernel_name
        self._launches: list[tuple[GroupBox, float]] = []
        self._contentions: list[Contention] = []
        self._whole_s: list[float] = []
        self.kernel_digest = launch.kernel_digest
        self.device = launch.device
        self.ndrange = launch.ndrange
        self.saturation = launch.saturation
        self.order = launch.order
        self.launch_overhead_s = launch.launch_overhead_s

    def warm_up(self, box: GroupBox) -> None:
        """Warm the real launch up; nothing is recorded."""
        self._launch.warm_up(box)

    def settle(self) -> None:
        """Settle the real device; nothing is recorded."""
        self._launch.settle()

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Time boxes and record them."""
        durations = self._launch.time_boxes(boxes)
        self._launches += zip(boxes, durations, strict=True)
        return durations

    def measure_contention(self) -> Contention | None:
        """Find out what other programs leave to the real device, and record it."""
        found = self._launch.measure_contention()
        if found is not None:
            self._contentions.append(found)
        return found

    def time_whole(self) -> float:
        """Time the whole launch and record it."""
        duration_s = self._launch.time_whole()
        self._whole_s.append(duration_s)
        return duration_s

    def recording(self) -> Recording:
        """Give what was recorded so far."""
        clocks_s = tuple(clock_of(duration_s) for _, duration_s in self._launches)
        return Recording(
            kernel_name=self._kernel_name,
            kernel_digest=self.kernel_digest,
            device=self.device,
            ndrange=self.ndrange,
            saturation=self.saturation,
            order=self.order,
            launch_overhead_s=self.launch_overhead_s,
            launches=tuple((box, float(duration_s)) for box, duration_s in self._launches),
            clocks_s=() if set(clocks_s) == {None} else clocks_s,
            contention=combine_contention(self._contentions),
            whole_s=tuple(self._whole_s),
        )


class ReplayLaunch:
    """A `PreparedLaunch` that answers from a recording."""

    def __init__(self, recording: Recording) -> None:
        self._durations = dict(recording.launches)
        for (box, work_s), clock_s in zip(recording.launches, recording.clocks_s, strict=False):
            self._durations[box] = work_s if clock_s is None else LaunchTime(work_s, clock_s)
        self._contention = recording.contention
        self._whole_s = list(recording.whole_s)
        self.kernel_digest = recording.kernel_digest
        self.device = recording.device
        self.ndrange = recording.ndrange
        self.saturation = recording.saturation
        self.order = recording.order
        self.launch_overhead_s = recording.launch_overhead_s

    def warm_up(self, box: GroupBox) -> None:
        """Do nothing: nothing has to be compiled."""

    def settle(self) -> None:
        """Do nothing: no device has to wake."""

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Look durations up.

        Raises
        ------
        RecordingError
            If a box was not recorded: the recording was made with another plan or seed.
        """
        missing = [box for box in boxes if box not in self._durations]
        if missing:
            msg = (
                f"the recording of {self.device.id} has no {missing[0]}; "
                "replay it with the plan and seed it was made with, or record again"
            )
            raise RecordingError(msg)
        return [self._durations[box] for box in boxes]

    def measure_contention(self) -> Contention | None:
        """Give what was recorded of other programs."""
        return self._contention

    def time_whole(self) -> float:
        """Give the recorded whole runs one after the other."""
        if not self._whole_s:
            msg = f"the recording of {self.device.id} has no more whole runs; record with --measure"
            raise RecordingError(msg)
        return self._whole_s.pop(0)
