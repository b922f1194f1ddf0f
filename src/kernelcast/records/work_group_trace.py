"""When each work-group of a launch began and ended, and what that tells of the scheduler."""

from dataclasses import dataclass
from enum import StrEnum

from kernelcast.records.errors import KernelRunError
from kernelcast.records.ndrange import NDRange


class TraceMethod(StrEnum):
    AUTO = "auto"
    """By a clock where the device has one, else by steps; only asked for, never answered."""
    CLOCK = "clock"
    STEPS = "steps"
    """Launches of 1, 2, 3, ... work-groups are timed: t(n) climbs where a new wave begins."""


class Staircase(StrEnum):
    """Whether work-groups of a compute unit ended one after the other (paper, Fig. 5b, 6b, 8)."""

    YES = "yes"
    NO = "no"
    NOT_APPLICABLE = "not applicable"
    """No compute unit had two work-groups at once, or no clock told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    starts_s: tuple[float, ...]
    finishes_s: tuple[float, ...]
    """Per work-group in the order of their numbers, in seconds after the first start."""
    lanes: tuple[int, ...]
    """Where each ran: its compute unit if the device tells, else a lane without overlaps."""
    lanes_are_compute_units: bool
    waves: tuple[int, ...]
    """Number of each work-group's wave; the next wave begins after the first finish."""
    clock: str
    resolution_s: float
    """Least difference seen between two readings, in seconds."""
    launch_s: float
    plain_s: float
    """Time of the traced launch, and of the same work-groups without marks, in seconds."""

    def __post_init__(self) -> None:
        for number, (start, finish) in enumerate(zip(self.starts_s, self.finishes_s, strict=True)):
            if not 0 <= start <= finish:
                raise KernelRunError(
                    f"work-group {number} began at {start} s and ended at {finish} s; the "
                    f"device's clock ({self.clock}) is not usable"
                )

    @property
    def wave_count(self) -> int:
        return max(self.waves) + 1

    @property
    def slowdown(self) -> float:
        """How much longer the launch took because it was traced, as a factor."""
        return self.launch_s / self.plain_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    work_groups: tuple[int, ...]
    times_s: tuple[float, ...]
    has_steps: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkGroupTrace:
    device: str
    device_id: str
    problem: str
    kernel: str
    ndrange: NDRange
    compute_units: int
    reason: str
    concurrency: int | None
    """Most work-groups active at once on the whole device; None if neither clock nor steps told."""
    p_sat: int | None
    probe_concurrency: int
    """For comparison, what `kernelcast estimate` counts or computes without a trace."""
    staircase: Staircase
    outcome: Timeline | StepTimes
    run_length: float | None = None
    """Mean number of consecutive work-groups that a lane takes one after the other."""

    @property
    def method(self) -> TraceMethod:
        return TraceMethod.CLOCK if isinstance(self.outcome, Timeline) else TraceMethod.STEPS

    @property
    def work_groups(self) -> int:
        """Work-groups that were traced, or those of the largest of the growing launches."""
        if isinstance(self.outcome, Timeline):
            return len(self.outcome.starts_s)
        return self.outcome.work_groups[-1]
