"""How models are trained and validated; imports nothing heavy, since help texts show it."""

import math
from dataclasses import dataclass, field
from enum import StrEnum

from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.errors import InputError

DEFAULT_MODEL = "hybrid"
POOLED_MODEL = "hybrid_pooled"
STATIC_MODEL = "static"
"""What is trained where no row has samples."""
CPU_MODEL = "cpu_model"
"""Names the revision of the analytic CPU model among the versions of an observation."""
LEAST_GROUPS = 3
"""One to hold out, and two to learn from."""


class Split(StrEnum):
    LAUNCH = "launch"
    KERNEL = "kernel"
    FAMILY = "family"
    """The kernel's application where that is known, else the kernel."""
    APPLICATION = "application"
    DEVICE = "device"


def pluralise(what: str) -> str:
    return {"launch": "launches", "family": "families"}.get(what, f"{what}s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    shortest_s: float = 0.1
    """Shortest measured time of the whole launch, in seconds; 0 takes all. The paper's kernels take
    at least 0.1 s (section 6)."""
    least_work_groups: int = 256
    """Fewest work-groups; 0 takes all, also launches whose work-groups are not known."""

    def __post_init__(self) -> None:
        if not (0 <= self.shortest_s < math.inf and self.least_work_groups >= 0):
            raise InputError(
                f"rows of at least {self.shortest_s} s and {self.least_work_groups} work-groups: "
                "give numbers of at least 0"
            )

    def takes(self, seconds: float, work_groups: float) -> bool:
        """Tell whether a launch counts; NaN stands for what is not known."""
        many = not self.least_work_groups or work_groups >= self.least_work_groups
        return seconds >= self.shortest_s and many

    def describe(self) -> str:
        return f"at least {self.shortest_s:g} s and {self.least_work_groups} work-groups"


ALL_ROWS = RowFilter(shortest_s=0.0, least_work_groups=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSettings:
    split: Split = Split.KERNEL
    """What is held out as a whole. For devices, models learn from all other devices at once."""
    models: tuple[str, ...] = ()
    """Names of the catalogue; none means the usual rivals of the split."""
    rows: RowFilter = field(default_factory=RowFilter)
    coverage: float = DEFAULT_COVERAGE
    folds: int | None = None
    """Groups are held out in so many parts at most; None holds out one at a time."""
    jobs: int = -1
    """Processes; -1 takes one per processor."""
    scheduler: str | None = None
    """Address of a Dask cluster that takes the place of own processes."""

    def __post_init__(self) -> None:
        check_jobs(self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    with_validation: bool = True
    """Whether each model is validated too, which takes many times longer than to train it."""
    coverage: float = DEFAULT_COVERAGE
    jobs: int = -1

    def __post_init__(self) -> None:
        check_jobs(self.jobs)


def check_jobs(jobs: int) -> None:
    if jobs < 1 and jobs != -1:
        raise InputError(f"{jobs} processes: give at least 1, or -1 for one per processor")
