"""How work-groups fill the compute units: full waves, and what is left for the last one."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Work-groups on compute units."""

    private_factor: float
    """Time of the busiest compute unit over the mean."""
    waves: float
    """Work-groups that run one after the other in each place."""
    phases: tuple[tuple[float, float], ...]
    """Part of all work-groups, and how many of them a compute unit holds meanwhile."""


def balance(work_groups: int, units: int, resident: int) -> Schedule:
    """Make the schedule of a launch without beginning and end: all units are always full.

    A launch that is too small to fill them is spread evenly.

    Examples
    --------
    >>> balance(100, 80, 1)
    Schedule(private_factor=1.0, waves=1.25, phases=((1.0, 1.0),))
    """
    return Schedule(
        private_factor=1.0,
        waves=max(work_groups / (units * resident), 1.0),
        phases=((1.0, min(float(resident), work_groups / units)),),
    )


def schedule(work_groups: int, units: int, resident: int) -> Schedule:
    """Make the schedule that whole work-groups allow.

    Parameters
    ----------
    resident : int
        Work-groups that a unit holds at once.

    Examples
    --------
    >>> schedule(100, 80, 1)
    Schedule(private_factor=1.6, waves=2, phases=((0.8, 1.0), (0.2, 0.25)))
    """
    places = units * resident
    full, rest = divmod(work_groups, places)
    phases = [(full * places / work_groups, float(resident))] if full else []
    if rest:
        phases.append((rest / work_groups, rest / units))
    busiest = math.ceil(work_groups / units)
    return Schedule(
        private_factor=busiest * units / work_groups,
        waves=full + (rest > 0),
        phases=tuple(phases),
    )
