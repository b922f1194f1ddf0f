"""How much time a calibration may take."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

FEWEST_REPEATS = 5
"""Runs after which a narrow interval may end a measurement."""


class Effort(StrEnum):
    """How thorough: `QUICK` takes at most a minute per device, `FULL` five, on two cores."""

    QUICK = "quick"
    NORMAL = "normal"
    FULL = "full"

    @property
    def repeats(self) -> int:
        """Most runs of one measurement; the microbenchmarks paper's 25 at `FULL`."""
        return _PLANS[self].repeats

    @property
    def narrow(self) -> float:
        """Half width of the mean's interval, as its share, that ends a measurement early."""
        return _PLANS[self].narrow

    @property
    def run_s(self) -> float:
        """How long one run should last, in seconds."""
        return _PLANS[self].run_s

    @property
    def patience_s(self) -> float:
        """How long a bench waits in total for a machine that others keep busy, in seconds."""
        return _PLANS[self].patience_s

    def pick(self, *, quick: T, normal: T, full: T) -> T:
        """Choose sizes or points by effort.

        Examples
        --------
        >>> Effort.QUICK.pick(quick=3, normal=6, full=12)
        3
        """
        return {Effort.QUICK: quick, Effort.NORMAL: normal, Effort.FULL: full}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    repeats: int
    narrow: float
    run_s: float
    patience_s: float


_PLANS = {
    Effort.QUICK: _Plan(repeats=7, narrow=0.02, run_s=2e-3, patience_s=1.5),
    Effort.NORMAL: _Plan(repeats=15, narrow=0.015, run_s=3e-3, patience_s=5.0),
    Effort.FULL: _Plan(repeats=25, narrow=0.01, run_s=5e-3, patience_s=10.0),
}
