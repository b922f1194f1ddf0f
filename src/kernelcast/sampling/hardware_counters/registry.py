"""Which providers of hardware counters there are, and which of them work here."""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelcast.sampling.hardware_counters.perf_event import PerfEventCounters
from kernelcast.sampling.hardware_counters.provider import Availability, HardwareCounterProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedProvider:
    """A provider with the outcome of its trial."""

    provider: HardwareCounterProvider
    availability: Availability


def probe_providers(
    providers: Iterable[HardwareCounterProvider] | None = None,
) -> tuple[ProbedProvider, ...]:
    """Try every provider, those that do not work here included.

    Parameters
    ----------
    providers : iterable of HardwareCounterProvider, optional
        Those to try; all that kernelcast knows when left out.
    """
    known = (PerfEventCounters(),) if providers is None else providers
    return tuple(ProbedProvider(provider=one, availability=one.probe()) for one in known)


def find_providers(
    providers: Iterable[HardwareCounterProvider] | None = None,
) -> tuple[HardwareCounterProvider, ...]:
    """Give the providers that work here; often there is none, as in most virtual machines."""
    return tuple(
        one.provider for one in probe_providers(providers) if one.availability.is_available
    )
