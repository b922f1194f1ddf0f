"""The few constants of the limiter model, with their provenance."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """Address translation as a compute unit meets it."""

    pages: float
    """Pages of 2 MiB that a work-group may use at once before translations are evicted."""
    miss_s: float
    """Seconds that each page beyond them costs a compute unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterConstants:
    """How limiters overlap, and numbers of machines that no machine description holds."""

    name: str
    """Of the set."""
    provenance: str
    """Who found the numbers, from what."""
    exposed_wavefronts: float
    """Part of the L1 cache's wavefront cycles during which a compute unit does not take part in
    DRAM transfers: loads return in order, so hits wait behind misses. Counts as far as places for
    work-items stay empty."""
    exposed_lines: float
    """Cycles of the same kind for each line that a warp's load looks up."""
    overlap_power: float
    """How arithmetic, issue and memory overlap, see `Limits`, where the machine description has no
    ``overlap_power`` of its own."""
    counts_fill: bool
    """Whether lines that arrive from L2 occupy the L1 cache, one sector a cycle."""
    counts_half_warps: bool
    """Whether L1 cycles are the paper's bank conflicts by half-warps (section 4.2)."""
    counts_beyond_paper: bool
    """Whether saturation, latency, translation, tail, launch and the rest count; without them the
    time is the largest of FP, L1, L2 and DRAM."""
    bandwidths: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Bytes per second of L2 and DRAM by machine id, in place of the description's."""
    translation: Mapping[str, Translation] = field(default_factory=dict)
    """By machine id."""


FITTED = LimiterConstants(
    name="kernelcast",
    provenance="fitted to the run times of 20 local sizes of a 25-point stencil on a V100; "
    "overlap_power: median of five GPUs' rooflines, see benchmarks/gpu_microbenchmarks.py",
    exposed_wavefronts=0.82,
    exposed_lines=0.38,
    overlap_power=2.4,
    counts_fill=True,
    counts_half_warps=False,
    counts_beyond_paper=True,
    translation={"v100": Translation(pages=73.0, miss_s=46e-9)},
)
PAPER_2022 = LimiterConstants(
    name="paper-2022",
    provenance="Ernst et al., JPDC 2022, with the bandwidths of its implementation",
    exposed_wavefronts=0.0,
    exposed_lines=0.0,
    overlap_power=math.inf,
    counts_fill=False,
    counts_half_warps=True,
    counts_beyond_paper=False,
    bandwidths={"v100": (2500e9, 790e9), "a100": (4500e9, 1400e9)},
)
_SETS = {one.name: one for one in (FITTED, PAPER_2022)}


def match_constants(hit_rates: str) -> LimiterConstants:
    """Give the set of constants that belongs to a set of hit rates: of the same name, if any.

    Examples
    --------
    >>> match_constants("paper-2022").name, match_constants("mine.yaml").name
    ('paper-2022', 'kernelcast')
    """
    return _SETS.get(hit_rates, FITTED)
