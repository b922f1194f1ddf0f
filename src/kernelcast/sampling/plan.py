"""How much to sample."""

from dataclasses import dataclass

from kernelcast.records.errors import InputError

DEFAULT_BUDGET = 0.05
"""Share of the predicted time that sampling may take unless another is asked for."""
SAMPLER = 6
"""Revision of how launches are sampled, kept with observations; models refuse samples of revisions
that they have not learned from. 1: windows anywhere; 2: rows of tiles, places by counted work (ADR
0016 to 0019), compiled as the whole (ADR 0004); 3: pages read before (ADR 0020); 4: two moments
(ADR 0032), pairs of warmed windows on GPUs (ADR 0039); 5: slabs (ADR 0042); 6: one slab
and a shorter one, kernels told what they lack (ADR 0042), threads' own clocks (ADR 0045)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPlan:
    budget: float = DEFAULT_BUDGET
    """Share of the predicted time; short launches get a millisecond or two, half of it at most."""
    min_launch_s: float = 100e-6
    """Below which a launch is mostly noise."""
    moments: int = 1
    seed: int = 0
    is_known_even: bool = False
    """Whether all work-groups, or those at the places, are known to do the same."""
    places: tuple[float, ...] = ()
    """Where to sample, as shares of the work-groups in order; anywhere if there are none."""
    place_weight: float = 1.0
    """Work of the work-groups there, over that of the mean work-group."""

    def __post_init__(self) -> None:
        if not 0 < self.budget <= 1:
            msg = f"budget {self.budget}: give a share of the predicted time, above 0, at most 1"
            raise InputError(msg)
        if self.moments < 1:
            raise InputError(f"moments {self.moments}: give a whole number of at least 1")
        if not all(0 <= one < 1 for one in self.places):
            msg = f"places {self.places}: give shares of the work-groups, from 0 to below 1"
            raise InputError(msg)
