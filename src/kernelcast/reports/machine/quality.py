"""What makes a calibration doubtful: numbers that cannot be, scatter, age, and gaps."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from statistics import median
from typing import Any, Final

from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait, TraitSource

_WIDEST: Final = 0.2
"""Half of a 95 % interval over its number; undisturbed calibrations stay far below."""
_LONGEST_DAYS: Final = 180
_SLACK: Final = 1.1


def list_doubts(machine: MachineDescription, today: date | None = None) -> list[str]:
    """Say what speaks against the numbers of a calibration; nothing of good ones.

    Parameters
    ----------
    today : date, optional
        The day that its age is counted to.
    """
    return list(_find_doubts(machine, today or datetime.now(UTC).date()))


def find_age_days(machine: MachineDescription, today: date | None = None) -> int | None:
    """Give the days since a calibration; None where its day is not known."""
    try:
        day = date.fromisoformat(machine.calibrated_on[:10])
    except ValueError:
        return None
    return ((today or datetime.now(UTC).date()) - day).days


def _find_doubts(machine: MachineDescription, today: date) -> Iterator[str]:
    peaks = {one.name: one.peak_per_s for one in machine.instructions}
    single, double = peaks.get("fp32"), peaks.get("fp64")
    if single is not None and double is not None and double.value > _SLACK * single.value:
        yield (
            "it was disturbed: double precision is faster than single precision, which cannot be"
        )
    spread = _find_spread(machine)
    if spread is not None and spread > _WIDEST:
        yield f"it was disturbed: half of its numbers are known to {spread * 100:.0f} % only"
    age = find_age_days(machine, today)
    if age is not None and age > _LONGEST_DAYS:
        yield f"it is {age} days old: drivers and clocks may have changed since"
    if machine.not_obtained:
        yield f"{len(machine.not_obtained)} numbers could not be obtained"


def _find_spread(machine: MachineDescription) -> float | None:
    """Give the middle half width of the measured numbers' intervals, over the numbers."""
    widths = [
        (one.high - one.low) / 2 / abs(one.value)
        for one in _list_measured(machine)
        if one.low is not None and one.high is not None and one.value
    ]
    return median(widths) if widths else None


def _list_measured(machine: MachineDescription) -> Iterator[Trait[Any]]:
    found: list[Trait[Any] | None] = [one.peak_per_s for one in machine.instructions]
    for cache in machine.caches:
        found += [cache.latency_s, cache.load_bytes_per_s, cache.copy_bytes_per_s]
    for memory in machine.memories:
        found += [*memory.load_bytes_per_s.values(), memory.copy_bytes_per_s, memory.latency_s]
    found += machine.costs.values()
    for one in found:
        if one is not None and one.source is TraitSource.MEASURED:
            yield one
