"""Why an estimate is what it is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from kernelcast.records.contention import Contention
from kernelcast.records.errors import KernelcastError


class Tier(StrEnum):
    """What weighs most in an estimate, best first."""

    HISTORY = "history"
    SIZES = "sizes"
    HYBRID = "hybrid"
    LINEAR = "linear"
    LEARNED = "learned"
    ANALYTIC = "analytic"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFacts:
    p1: int
    p2: int
    """Work-groups of a shorter and of a longer sampling launch."""
    launches: int
    intercept_s: float
    rate_s: float
    """What each launch costs beside its work-groups, and seconds per work-group."""
    standard_error_s: float
    """Of the whole launch's time, from the spread of the samples, in seconds."""
    is_even: bool
    is_weighed: bool = False
    """Whether they were weighed by the work that the source foretells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    name: str = ""
    version: str = ""
    place: str = ""
    """What it is published as, and the registry that holds it."""
    schema_id: str = ""
    data_digest: str = ""
    """Of the features it takes, and of the data it was trained on."""
    rows: int | None = None
    error: float | None = None
    """Mean relative error on groups held out, by the validation stored with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    key: str
    seconds: float
    when: datetime | None = None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFacts:
    """Earlier observations of the very same launch."""

    observations: int
    """How many the answer rests on, or would."""
    first: datetime | None = None
    last: datetime | None = None
    """When the oldest and the newest of them were made; None where it is not known."""
    set_aside: tuple[SetAside, ...] = ()
    contradiction: str = ""
    """What those that are believed contradict; they have repeated. Empty if nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    feature: str
    factor: float
    """The answer with the feature over the answer as if the feature were not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceFacts:
    kind: str
    """Where it comes from: ``samples``, ``observed`` (this launch), ``other_sizes``,
    ``other_estimates``, ``learned`` (a model of one's own), ``analytic``."""
    seconds: float
    deviation: float
    """Standard deviation of the logarithm of its time."""
    weight: float
    moment: str = ""
    """When it was sampled; samples of one moment share an error."""
    note: str = ""
    measured_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    tier: Tier
    missing: Mapping[str, str] = field(default_factory=dict)
    """Why there is nothing of a tier, or why it does not count."""
    methods_s: Mapping[str, float] = field(default_factory=dict)
    interval: str = ""
    pieces: tuple[PieceFacts, ...] = ()
    evidence: str = ""
    """Whose variances these are: the device's, its runtime's, of any CPU device, or built-in."""
    linear: LinearFacts | None = None
    model: ModelFacts | None = None
    history: HistoryFacts | None = None
    influences: Sequence[Influence] = ()
    """Features that matter most to the learned model, strongest first."""
    limiters: Mapping[str, float] = field(default_factory=dict)
    """Seconds that each part of the launch alone would take, by the analytic model."""
    notes: tuple[str, ...] = ()
    contention: Contention | None = None
    """What other programs left to the device meanwhile; None where nothing is known of any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticEstimate:
    model: str
    """Which: ``gpu``, ``cpu``, ``scratchpad``, ``mwp_cwp``."""
    machine: str
    seconds: float
    limiter: str
    """What bounds it: a key of `limiters`."""
    limiters: Mapping[str, float]
    """Seconds that each part alone would take: ``fp32``, ``L1``, ``DRAM``, ``latency``."""
    volumes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of the whole launch over boundaries: ``L2_to_L1``, ``DRAM_to_L2``, ``L2_to_DRAM``."""
    quantities: Mapping[str, float] = field(default_factory=dict)
    """Everything else worth reading or learning from; names end in their unit, see
    `kernelcast.records.feature_vector.UNITS`."""
    notes: tuple[str, ...] = ()
    """What was assumed, and which numbers of the machine were missing."""
    doubt: float = 0.0
    """By how much more than usual the logarithm of the time may be off, where data end loops."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            msg = f"the {self.model} model answers {self.seconds} s; expected a positive time"
            raise KernelcastError(msg)
        if self.limiter not in self.limiters:
            msg = f"limiter {self.limiter!r} is not one of {', '.join(self.limiters)}"
            raise KernelcastError(msg)
