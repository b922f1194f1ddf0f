"""Hardware counters, where a machine gives them: optional, and probed before they are used."""

from kernelcast.sampling.hardware_counters.provider import Availability, HardwareCounterProvider
from kernelcast.sampling.hardware_counters.registry import (
    ProbedProvider,
    find_providers,
    probe_providers,
)

__all__ = [
    "Availability",
    "HardwareCounterProvider",
    "ProbedProvider",
    "find_providers",
    "probe_providers",
]
