"""Recordings of samples, and a backend that answers from them without a device.

A recording keeps each box of work-groups that ran with its duration. The same planning code with
the same seed asks for the same boxes, so the whole pipeline can be repeated, tested and examined
far from the device. Format: JSON, see `FORMAT_VERSION`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelcast.records.device import (
    DeviceDescription,
    DeviceKind,
    DispatchOrder,
    SaturationPoint,
)
from kernelcast.records.errors import InputError, RecordingError
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.json_values import (
    check_fields,
    take_integers,
    take_number,
    take_texts,
)
from kernelcast.sampling.plan import SamplingPlan

FORMAT_VERSION = 1
"""1 (0.1.0): device, ndrange, saturation, launches, whole runs; later files may hold the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one estimate saw of a device.

    Parameters
    ----------
    kernel_name, kernel_digest : str
        The kernel.
    device : DeviceDescription
        The device.
    ndrange : NDRange
        The whole launch, local size chosen.
    saturation : SaturationPoint
        P_sat.
    order : DispatchOrder
        Order in which the device starts work-groups.
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


class RecordingLaunch:
    """A `PreparedLaunch` that passes every call on and keeps what came back.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch that really runs.
    kernel_name : str
        For the recording.
    """

    def __init__(self, launch: PreparedLaunch, kernel_name: str) -> None:
        self._launch = launch
        self._kernel_name = kernel_name
        self._launches: list[tuple[GroupBox, float]] = []
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

    def time_whole(self) -> float:
        """Time the whole launch and record it."""
        duration_s = self._launch.time_whole()
        self._whole_s.append(duration_s)
        return duration_s

    def recording(self) -> Recording:
        """Give what was recorded so far."""
        return Recording(
            kernel_name=self._kernel_name,
            kernel_digest=self.kernel_digest,
            device=self.device,
            ndrange=self.ndrange,
            saturation=self.saturation,
            order=self.order,
            launch_overhead_s=self.launch_overhead_s,
            launches=tuple(self._launches),
            whole_s=tuple(self._whole_s),
        )


class ReplayLaunch:
    """A `PreparedLaunch` that answers from a recording.

    Parameters
    ----------
    recording : Recording
        What a device once answered.
    """

    def __init__(self, recording: Recording) -> None:
        self._durations = dict(recording.launches)
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

    def time_whole(self) -> float:
        """Give the recorded whole runs one after the other.

        Raises
        ------
        RecordingError
            If there are no more.
        """
        if not self._whole_s:
            msg = f"the recording of {self.device.id} has no more whole runs; record with --measure"
            raise RecordingError(msg)
        return self._whole_s.pop(0)


def write_recordings(path: Path, recordings: Sequence[Recording]) -> None:
    """Write recordings as JSON."""
    content = {"format": FORMAT_VERSION, "recordings": [asdict(one) for one in recordings]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_recordings(path: Path) -> list[Recording]:
    """Read recordings.

    Raises
    ------
    RecordingError
        If the file cannot be read, is no recording, or is of a newer version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content["format"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        msg = f"{path}: is no recording ({error}); make one with `kernelcast estimate --record`"
        raise RecordingError(msg) from error
    if version != FORMAT_VERSION:
        msg = f"{path}: is of format {version}, this version reads {FORMAT_VERSION}"
        raise RecordingError(msg)
    try:
        return [_read(one) for one in _take_list(content["recordings"])]
    except (AttributeError, KeyError, TypeError, ValueError, InputError) as error:
        msg = f"{path}: the recording is incomplete ({error!r}); record again"
        raise RecordingError(msg) from error


def _take_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        msg = f"expected a list, found {value!r}"
        raise ValueError(msg)  # noqa: TRY004 - the file is wrong, not a caller's type
    return value


def _read(one: dict[str, Any]) -> Recording:
    check_fields(Recording, one)
    ndrange = NDRange(**{key: take_integers(value, key) for key, value in one["ndrange"].items()})
    return Recording(
        kernel_name=one["kernel_name"],
        kernel_digest=one["kernel_digest"],
        device=_read_device(dict(one["device"])),
        ndrange=ndrange,
        saturation=_read_saturation(dict(one["saturation"])),
        order=DispatchOrder(one["order"]),
        launch_overhead_s=one["launch_overhead_s"],
        launches=tuple(
            (_read_box(box, ndrange), take_number(duration, "a duration"))
            for box, duration in _take_list(one["launches"])
        ),
        whole_s=tuple(take_number(value, "a whole run") for value in _take_list(one["whole_s"])),
        plan=_read_plan(one.get("plan")),
        weights=tuple(take_number(value, "a weight") for value in one.get("weights", ())),
        facts=_read_facts(one.get("facts")),
    )


def _read_facts(content: object) -> dict[str, Any] | None:
    if isinstance(content, dict | None):
        return content
    msg = f"facts: expected a mapping, found {content!r}"
    raise ValueError(msg)


def _read_device(content: dict[str, Any]) -> DeviceDescription:
    check_fields(DeviceDescription, content)
    content["kind"] = DeviceKind(content["kind"])
    content["max_work_item_sizes"] = take_integers(
        content["max_work_item_sizes"], "max_work_item_sizes"
    )
    content["extensions"] = take_texts(content["extensions"], "extensions")
    return DeviceDescription(**content)


def _read_saturation(content: dict[str, Any]) -> SaturationPoint:
    p_sat = content.pop("p_sat")
    (value,) = take_integers([p_sat["value"]], "p_sat")
    check_fields(SaturationPoint, content)
    point = SaturationPoint(
        p_sat=Trait(value=value, source=TraitSource(p_sat["source"])), **content
    )
    if min(value, point.concurrency, point.saturated_from) < 1:
        msg = f"{point} has no work-groups; each number is at least 1"
        raise ValueError(msg)
    return point


def _read_box(content: dict[str, Any], ndrange: NDRange) -> GroupBox:
    box = GroupBox(**{key: take_integers(value, key) for key, value in content.items()})
    ndrange.work_items_of(box)  # raises where the box is not inside
    return box


def _read_plan(content: dict[str, Any] | None) -> SamplingPlan | None:
    if content is None:
        return None
    check_fields(SamplingPlan, content)
    places = tuple(take_number(one, "places") for one in content.get("places", ()))
    return SamplingPlan(**{**content, "places": places})
