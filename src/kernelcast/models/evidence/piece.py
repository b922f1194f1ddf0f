"""What is known of a launch's time, and what comes out when it is put together."""

import math
from dataclasses import dataclass
from enum import StrEnum

from kernelcast.records.errors import InputError


class Kind(StrEnum):
    """Where a piece of evidence comes from."""

    SAMPLES = "samples"
    OBSERVED = "observed"
    OTHER_SIZES = "other_sizes"
    OTHER_ESTIMATES = "other_estimates"
    LEARNED = "learned"
    ANALYTIC = "analytic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A time of a launch, as one source tells it.

    Its error is the sum of one that it shares with all pieces of its basis, one that it shares
    with those of its moment, and one of its own; the variance is that of the sum.

    Raises
    ------
    InputError
        If a number is not finite, or the parts leave nothing of the variance.
    """

    kind: Kind
    """Where it comes from."""
    log_seconds: float
    """Natural logarithm of the time in seconds."""
    variance: float
    """Of `log_seconds`."""
    moment: str = ""
    """When it was measured; pieces of one moment and basis share an error. Empty: with no other."""
    moment_variance: float = 0.0
    """The part of `variance` that the moment brings."""
    basis: str = ""
    """What it rests on, such as the sampler; pieces of one basis share an error. Empty: with no
    other."""
    basis_variance: float = 0.0
    """The part of `variance` that the basis brings."""
    repeats: int = 1
    """How many measurements agree on it: votes where pieces contradict each other, however much
    their errors have in common."""
    note: str = ""
    """What it rests on, in words."""
    at_s: float | None = None
    """When it was sampled, in UNIX seconds; None where that is not known."""
    age_variance: float = 0.0
    """The part of `basis_variance` that the time since then brings."""
    uncalibrated_variance: float = 0.0
    """The part of it that no calibration has seen: other programs, launches of milliseconds."""

    def __post_init__(self) -> None:
        shared = self.moment_variance + self.basis_variance
        # One comparison each: NaN and infinity fail it too.
        if not (-math.inf < self.log_seconds < math.inf and 0 <= shared < self.variance < math.inf):
            msg = (
                f"evidence {self.kind}: ln seconds {self.log_seconds}, variance {self.variance}, "
                f"of which {shared} shared; expected finite numbers, and a variance above what "
                "is shared"
            )
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedEstimate:
    """Pieces put together."""

    log_seconds: float
    """Natural logarithm of the time in seconds."""
    variance: float
    """Of `log_seconds`, as the pieces' own variances tell it."""
    pieces: tuple[Piece, ...]
    """What was put together."""
    weights: tuple[float, ...]
    """One per piece; they add up to 1."""
    disagreement: float
    """Root mean square of the pieces' distances from the result, in their standard deviations; a
    distance counts as 4 at most."""
    correction: float = 0.0
    """How a learned model has moved `log_seconds`."""
    distance: float = 0.0
    """Of the launch to those that it has learned from; above 1 is unlike them."""

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return math.exp(self.log_seconds)

    def share_of(self, kinds: frozenset[Kind]) -> float:
        """Give the weight of pieces of some kinds."""
        pairs = zip(self.pieces, self.weights, strict=True)
        return sum(weight for one, weight in pairs if one.kind in kinds)

    @property
    def leading_kind(self) -> Kind:
        """The kind that weighs most."""
        found: dict[Kind, float] = {}
        for piece, weight in zip(self.pieces, self.weights, strict=True):
            found[piece.kind] = found.get(piece.kind, 0.0) + weight
        return max(found, key=found.__getitem__)
