"""What one estimate saw of a device: from it, the estimate can be made again without the device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelcast.records.device import DeviceDescription, SaturationPoint
from kernelcast.records.ndrange import NDRange
from kernelcast.records.samples import SampleRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one estimate saw of a device."""

    kernel_name: str
    kernel_digest: str
    device: DeviceDescription
    ndrange: NDRange
    saturation: SaturationPoint
    launch_overhead_s: float
    """Time of an empty launch, in seconds."""
    runs: tuple[SampleRun, ...]
    """Samples, one per moment."""
    whole_s: tuple[float, ...] = ()
    """Durations of whole runs that were compared with, in seconds."""
    slowdown: float | None = None
    """How many times as long as alone they took; None in older files."""
    facts: Mapping[str, Any] | None = None
    """What learned models were told beside samples, as JSON holds it; None where none asked."""
    pieces: tuple[Mapping[str, Any], ...] = ()
    """What the answer was put together of, as JSON holds it; none in older files."""
