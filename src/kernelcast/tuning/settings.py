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

    Parameters
    ----------
    models : TuneModels
        What ranks.
    top : int
        Configurations that are shown, and measured where that is asked for.
    measure : bool
        Whether they are measured.
    runs : int
        Measured runs of each, in turn; the median counts.
    sampled : int
        Configurations that `TuneModels.HYBRID` samples.
    seed : int
        Of random buffers and sampled places.
    timeout_s : float
        A configuration that runs for longer is given up, in seconds.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    models: TuneModels = TuneModels.ANALYTIC
    top: int = 5
    measure: bool = False
    runs: int = 7
    sampled: int = 10
    seed: int = 0
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        least = {"top": self.top, "runs": self.runs, "sampled": self.sampled}
        for name, value in least.items():
            if value < 1:
                raise InputError(f"{name} {value}: give at least 1")
        if not 0 < self.timeout_s <= 1e6:
            msg = f"timeout {self.timeout_s} s: give a number above 0, at most 1,000,000"
            raise InputError(msg)
