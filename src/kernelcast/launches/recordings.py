"""Keeps raw samples in a file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernelcast.models.evidence.fusion import Piece
from kernelcast.records.arguments import Access
from kernelcast.records.device import DeviceDescription, SaturationPoint
from kernelcast.records.errors import InputError, KernelRunError, RecordingError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.ndrange import NDRange
from kernelcast.records.private_files import write_output
from kernelcast.records.samples import SampleRun, TimedLaunch
from kernelcast.sampling.sampler import is_even, rates_of
from kernelcast.workers.wire import structure

FORMAT_VERSION = 2
"""1: launches without what the sampler knew of them. 2: the samples of each moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """What is known of a launch on a device beside samples; it holds for every sampling."""

    values: Mapping[str, float]
    issued_per_work_item: float | None
    """Instructions issued per work-item, by software counters."""
    analytic: AnalyticEstimate | None
    accesses: tuple[Access | None, ...] = ()
    """What the kernel may do with each argument, as far as the source tells."""
    notes: tuple[str, ...] = ()
    peaks: Mapping[str, float] = field(default_factory=dict)
    """What the device can do at most, see `kernelcast.records.machine.read_peaks`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    kernel_name: str
    kernel_digest: str
    device: DeviceDescription
    ndrange: NDRange
    saturation: SaturationPoint
    launch_overhead_s: float
    runs: tuple[SampleRun, ...]
    whole_s: tuple[float, ...] = ()
    """Durations of whole runs that were compared with, in seconds."""
    slowdown: float | None = None
    """How many times as long as alone they took; None in older files."""
    facts: LaunchFacts | None = None
    """What learned models were told beside samples; None where none asked."""
    pieces: tuple[Piece, ...] = ()
    """What the answer was put together of; none in older files."""


RecordedAnswer = tuple[DeviceAnswer, Recording | None]
"""An answer with the raw samples behind it; a device that failed has none."""


def write_recordings(path: Path, recordings: Sequence[Recording]) -> None:
    content = {"format": FORMAT_VERSION, "recordings": [asdict(one) for one in recordings]}
    text = json.dumps(
        content, indent=1,
        default=lambda value: sorted(value) if isinstance(value, frozenset) else value.isoformat(),
    )  # fmt: skip
    write_output(path, f"{text}\n", "the recording")


def read_recordings(path: Path) -> list[Recording]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content["format"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        msg = f"{path}: is no recording ({reason}); make one with `kernelcast estimate --record`"
        raise RecordingError(msg) from error
    if version not in (1, FORMAT_VERSION):
        raise RecordingError(f"{path}: is of format {version}, this version reads {FORMAT_VERSION}")
    try:
        told = [dict(one) for one in content["recordings"]]
        return [_read(_modernise(one) if version == 1 else one) for one in told]
    except (KeyError, TypeError, ValueError, InputError, KernelRunError) as error:
        msg = f"{path}: the recording is incomplete ({error}); record again"
        raise RecordingError(msg) from error


def _read(content: dict[str, Any]) -> Recording:
    if isinstance(content.get("facts"), dict):
        gone = {"format", "cost_s"}  # older files have them
        content["facts"] = {k: one for k, one in content["facts"].items() if k not in gone}
    saturation = dict(content["saturation"])
    saturation.pop("saturated_from", None)  # older files have it
    repeated = {"kernel_digest", "device_id"}  # older files have them in each run too
    runs = [{k: one for k, one in run.items() if k not in repeated} for run in content["runs"]]
    found: Recording = structure({**content, "saturation": saturation, "runs": runs}, Recording)
    launches = [one for run in found.runs for one in run.launches]
    if not launches:
        raise ValueError("it holds no samples")
    for one in launches:
        found.ndrange.work_items_of(one.box)  # refuses boxes outside the index space
    times_s = (found.launch_overhead_s, *found.whole_s, found.slowdown or 0.0)
    point = found.saturation
    if min(times_s) < 0 or min(point.p_sat.value, point.concurrency) < 1:
        raise ValueError(f"{point}: each number is at least 1; and no time is negative")
    return found


def _modernise(content: dict[str, Any]) -> dict[str, Any]:
    """Make samples of one moment of the launches of the first format, each a window."""
    pairs, weights = content.pop("launches"), content.pop("weights", ())
    if len(weights) != len(pairs):
        weights = [1.0] * len(pairs)
    launches = [
        {"box": box, "window": window, "duration_s": duration_s, "weight": weight}
        for window, ((box, duration_s), weight) in enumerate(zip(pairs, weights, strict=True))
    ]
    timed: tuple[TimedLaunch, ...] = structure(launches, tuple[TimedLaunch, ...])
    run = {
        **{key: content[key] for key in ("ndrange", "launch_overhead_s")},
        "launches": launches,
        "is_even": not timed or is_even(rates_of(timed)),
    }
    for gone in ("order", "plan"):
        content.pop(gone, None)
    # The first whole run warmed up.
    return {**content, "runs": [run], "whole_s": content.get("whole_s", [])[1:]}
