"""How configurations are chosen."""

from dataclasses import dataclass
from enum import StrEnum

from kernelcast.records.errors import InputError


class TuneModels(StrEnum):
    """What ranks configurations."""

    ANALYTIC = "analytic"
    """The analytic model alone; nothing runs."""
    HYBRID = "hybrid"
    """A few work-groups of the configurations that the analytic model likes best run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSettings:
    """How configurations are ranked and measured.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    models: TuneModels = TuneModels.ANALYTIC
    """What ranks."""
    top: int = 5
    """Configurations that are shown, and measured where that is asked for."""
    measure: bool = False
    """Whether they are measured."""
    runs: int = 7
    """Measured runs of each, in turn; the median counts."""
    sampled: int = 10
    """Configurations that `TuneModels.HYBRID` samples."""
    seed: int = 0
    """Of random buffers and sampled places."""
    timeout_s: float = 60.0
    """A configuration that runs for longer is given up, in seconds."""

    def __post_init__(self) -> None:
        least = {"top": self.top, "runs": self.runs, "sampled": self.sampled}
        for name, value in least.items():
            if value < 1:
                raise InputError(f"{name} {value}: give at least 1")
        if not 0 < self.timeout_s <= 1e6:
            msg = f"timeout {self.timeout_s} s: give a number above 0, at most 1,000,000"
            raise InputError(msg)
