"""Puts pieces of evidence together: precisions as weights, unless a piece stands alone.

Errors are nested: ``y_i = m + basis + moment + own``, each normal up to `CORE` standard deviations
and of power tails beyond, so that an error of the far tail loses its weight instead of moving the
result. Samples err to one side more than to the other: a machine that does other things, and caches
that are cold, only ever lengthen a launch. So one that says more than the others counts less. The
mode of that likelihood is found by iteratively reweighted least squares from the piece
that the others contradict least: with weights given, generalised least squares finds the mean, and
what each error is to be taken for.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers


class Kind(StrEnum):
    SAMPLES = "samples"
    OBSERVED = "observed"
    OTHER_SIZES = "other_sizes"
    OTHER_ESTIMATES = "other_estimates"
    LEARNED = "learned"
    ANALYTIC = "analytic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    kind: Kind
    log_seconds: float
    variance: float
    moment: str = ""
    """When it was measured; pieces of one moment and basis share an error. Empty: with no other."""
    moment_variance: float = 0.0
    basis: str = ""
    """What it rests on, such as the sampler; pieces of one basis share an error. Empty: with no
    other."""
    basis_variance: float = 0.0
    repeats: int = 1
    """How many measurements agree on it: votes where pieces contradict each other, however much
    their errors have in common."""
    note: str = ""
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
            raise InputError(
                f"evidence {self.kind}: ln seconds {self.log_seconds}, variance {self.variance}, "
                f"of which {shared} shared; expected finite numbers, and a variance above what "
                "is shared"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedEstimate:
    log_seconds: float
    variance: float
    """Of `log_seconds`, as the pieces' own variances tell it."""
    pieces: tuple[Piece, ...]
    weights: tuple[float, ...]
    disagreement: float
    """Root mean square of the pieces' distances from the result, in their standard deviations; a
    distance counts as 4 at most."""
    correction: float = 0.0
    distance: float = 0.0
    """Of the launch to those that it has learned from; above 1 is unlike them."""

    @property
    def seconds(self) -> float:
        return math.exp(self.log_seconds)

    def share_of(self, kinds: frozenset[Kind]) -> float:
        pairs = zip(self.pieces, self.weights, strict=True)
        return sum(weight for one, weight in pairs if one.kind in kinds)

    @property
    def leading_kind(self) -> Kind:
        found: dict[Kind, float] = {}
        for piece, weight in zip(self.pieces, self.weights, strict=True):
            found[piece.kind] = found.get(piece.kind, 0.0) + weight
        return max(found, key=found.__getitem__)


CORE = 2.0
"""Standard deviations up to which errors count as normal. Chosen on the rows of PoCL a2d1, for
poisoned observations: with 3 a factor of 2 makes 7.9 % of an error of 5.7 %, with 2 7.1 %, and no
factor more; below 2 samples alone err by more (9.6 % at 1.5, 9.1 % at 2). Student's t of 2 to 8
degrees of freedom comes out alike, but needs all steps where pieces agree."""
_SQUARE = CORE * CORE
# A piece that has lost its weight must not widen the interval without end.
_MOST = 4.0 * _SQUARE
_RAN = frozenset({Kind.OBSERVED, Kind.SAMPLES, Kind.OTHER_SIZES})
# Of a shared error that nothing shares.
_NOTHING = 1e-12


def fuse(pieces: Sequence[Piece]) -> FusedEstimate:
    if not pieces:
        raise InputError("evidence: no pieces to put together; give at least one")
    if len(pieces) == 1:
        alone = pieces[0]
        return FusedEstimate(
            log_seconds=alone.log_seconds, variance=alone.variance, pieces=(alone,),
            weights=(1.0,), disagreement=0.0,
        )  # fmt: skip
    told = np.array([one.log_seconds for one in pieces])
    variances = np.array([one.variance for one in pieces])
    members, spreads = _list_errors(pieces)
    own = slice(len(spreads) - len(pieces), None)
    # What own errors count of samples that say more than the rest. Chosen on the rows of PoCL a2d1:
    # first answers err by 9.1 / 5.1 % with 1 (mean / median), 8.9 / 5.0 % with 0.5 and 8.9 / 5.2 %
    # with 0.25.
    trust_of_more = np.ones(len(spreads))
    trust_of_more[own] = [0.5 if one.kind is Kind.SAMPLES else 1.0 for one in pieces]

    def combine() -> tuple[float, float, Numbers, Numbers]:
        """Return mean and variance, weights of the pieces, and what each error is taken for."""
        believed = spreads / trust
        precision = np.linalg.inv((members.T * believed) @ members)
        shares = precision.sum(axis=0)
        total = float(shares.sum())
        mean = float(shares @ told) / total
        return mean, 1.0 / total, shares / total, believed * (members @ precision @ (told - mean))

    trust = np.ones(len(spreads))
    mean, variance, weights, errors = combine()
    is_contradicted = bool(((told - mean) ** 2 > _SQUARE * variances).any())
    if is_contradicted:
        squares = (told - _choose_start(pieces, told, variances)) ** 2 / variances
        trust[own] = _SQUARE / np.maximum(squares, _SQUARE)
        mean, variance, weights, errors = combine()
    if is_contradicted or any(one.kind is Kind.SAMPLES for one in pieces):
        for _ in range(6):
            squares = errors**2 / spreads
            # Of equal times, rounding calls none the slower one.
            is_slow = (errors > 0) & (squares > 1e-12)
            before, trust = trust, np.where(is_slow, trust_of_more, 1.0)
            trust *= _SQUARE / np.maximum(squares, _SQUARE)
            if np.abs(trust - before).max() < 0.02:
                break
            mean, variance, weights, errors = combine()
    distances = np.minimum((told - mean) ** 2 / variances, _MOST)
    return FusedEstimate(
        log_seconds=mean,
        variance=variance,
        pieces=tuple(pieces),
        weights=tuple(weights.tolist()),
        disagreement=math.sqrt(distances.mean()),
    )


def _list_errors(pieces: Sequence[Piece]) -> tuple[Numbers, Numbers]:
    """List errors: which pieces have each, shape (errors, pieces), and its variance; own ones last.

    Pieces of a moment share an error, and the moments of a basis; a group of one shares none.
    """
    own = [one.variance for one in pieces]
    shared: list[tuple[list[int], float]] = []
    for basis in dict.fromkeys(one.basis for one in pieces if one.basis):
        inside = [place for place, one in enumerate(pieces) if one.basis == basis]
        if len(inside) == 1:
            continue
        moments: dict[str, list[int]] = {}
        for place in inside:
            moments.setdefault(pieces[place].moment or f"#{place}", []).append(place)
        common = min(pieces[place].basis_variance for place in inside)
        for places in moments.values():
            moment = 0.0
            if len(places) > 1:
                moment = min(pieces[place].moment_variance for place in places)
                alone = common if len(moments) == 1 else 0.0
                shared.append((places, max(moment, _NOTHING) + alone))
            for place in places:
                own[place] -= moment + common
        if len(moments) > 1:
            shared.append((inside, max(common, _NOTHING)))
    members = np.zeros((len(shared) + len(pieces), len(pieces)))
    for error, (places, _) in enumerate(shared):
        members[error, places] = 1.0
    members[len(shared) :] = np.eye(len(pieces))
    return members, np.array([*(variance for _, variance in shared), *own])


def _choose_start(pieces: Sequence[Piece], told: Numbers, variances: Numbers) -> float:
    """Return the piece's time that the likelihood of all is highest at."""
    counts = Counter((one.basis, one.moment) for one in pieces if one.basis and one.moment)
    votes = np.array([one.repeats / counts.get((one.basis, one.moment), 1) for one in pieces])
    ran = [one for one in pieces if one.kind in _RAN] or pieces
    ordered = sorted(ran, key=lambda one: one.kind is Kind.OTHER_SIZES)
    centres = np.array([one.log_seconds for one in ordered])
    apart = np.abs(told - centres[:, None])
    squares = apart**2 / variances
    # Beyond so many standard deviations a piece is wrong, however much: a factor of a million is no
    # reason to believe the sharper one of two. With 50 a single observation that is wrong by 10
    # makes 28.5 % of an error of 10.4 % on Intel's runtime, with 15 10.9 %; on PoCL a2d1 all are
    # alike.
    beyond = 1.0 + np.log(np.clip(squares, _SQUARE, 15.0**2) / _SQUARE)
    # Between those that are all wrong, the one that is the least far from the others.
    costs = (np.where(squares > _SQUARE, _SQUARE * beyond, squares) + apart) @ votes
    # Ties that rounding decides go to the first.
    return float(centres[np.argmax(costs <= costs.min() * (1.0 + 1e-9))])
