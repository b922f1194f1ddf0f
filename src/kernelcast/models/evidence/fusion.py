"""Puts pieces of evidence together: precisions as weights, unless a piece stands alone.

Errors are nested: ``y_i = m + basis + moment + own``, each normal up to `CORE` standard deviations
and of power tails beyond, so that an error of the far tail loses its weight instead of moving the
result. Samples err to one side more than to the other: a machine that does other things, and caches
that are cold, only ever lengthen a launch. So one that says more than the others counts less. The
mode of that likelihood is found by iteratively reweighted least squares from the piece
that the others contradict least. With weights given, groups are combined from the inside out, which
is what generalised least squares does with the whole covariance matrix, in a few additions.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log

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
    """A time of a launch, as one source tells it."""

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
_SAMPLES = Kind.SAMPLES
_RAN = frozenset({Kind.OBSERVED, Kind.SAMPLES, Kind.OTHER_SIZES})
# Of a shared error that nothing shares.
_NOTHING = 1e-12


@dataclass(slots=True)
class _Part:
    """A piece, or a group of parts with an error in common; numbers change from step to step."""

    spread: float
    members: "tuple[_Part, ...]" = ()
    trust: float = 1.0
    trust_of_more: float = 1.0
    mean: float = 0.0
    variance: float = 0.0
    weight: float = 1.0

    def combine(self) -> None:
        """Combine the members, the inner ones first."""
        precision = total = 0.0
        for one in self.members:
            if one.members:
                one.combine()
            else:
                one.variance = one.spread / one.trust
            share = 1.0 / one.variance
            precision += share
            total += share * one.mean
        self.mean = total / precision
        self.variance = 1.0 / precision + self.spread / self.trust

    def judge(self, centre: float) -> float:
        """Trust each error by its size; gives the largest change of a trust."""
        error = (self.mean - centre) * self.spread / (self.trust * self.variance)
        change = self.believe(error)
        inner = centre + error
        for one in self.members:
            moved = one.judge(inner) if one.members else one.believe(one.mean - inner)
            if moved > change:
                change = moved
        return change

    def believe(self, error: float) -> float:
        """Trust its own error by its sign and size; gives the change of the trust."""
        square, limit = error * error, _SQUARE * self.spread
        # Of equal times, rounding calls none the slower one.
        is_slow = error > 0 and square > 1e-12 * self.spread
        trust = self.trust_of_more if is_slow else 1.0
        if square > limit:
            trust *= limit / square
        change = abs(trust - self.trust)
        self.trust = trust
        return change

    def divide(self, weight: float) -> None:
        """Hand a weight down to the members, by their precisions."""
        self.weight = weight
        share = weight / sum(1.0 / one.variance for one in self.members)
        for one in self.members:
            if one.members:
                one.divide(share / one.variance)
            else:
                one.weight = share / one.variance


def fuse(pieces: Sequence[Piece]) -> FusedEstimate:
    if not pieces:
        raise InputError("evidence: no pieces to put together; give at least one")
    if len(pieces) == 1:
        alone = pieces[0]
        return FusedEstimate(
            log_seconds=alone.log_seconds, variance=alone.variance, pieces=(alone,),
            weights=(1.0,), disagreement=0.0,
        )  # fmt: skip
    leaves, root = _nest(pieces)
    root.combine()
    distances = _measure(pieces, root.mean)
    is_contradicted = max(distances) > _SQUARE
    if is_contradicted:
        start = _choose_start(pieces)
        for one, leaf in zip(pieces, leaves, strict=True):
            square = (one.log_seconds - start) ** 2 / one.variance
            leaf.trust = 1.0 if square <= _SQUARE else _SQUARE / square
        root.combine()
    if is_contradicted or any(one.kind is _SAMPLES for one in pieces):
        for _ in range(6):
            if root.judge(root.mean) < 0.02:
                break
            root.combine()
        distances = _measure(pieces, root.mean)
    root.divide(1.0)
    return FusedEstimate(
        log_seconds=root.mean,
        variance=root.variance,
        pieces=tuple(pieces),
        weights=tuple([one.weight for one in leaves]),
        disagreement=(sum(min(one, _MOST) for one in distances) / len(distances)) ** 0.5,
    )


def _nest(pieces: Sequence[Piece]) -> tuple[list[_Part], _Part]:
    """Make a tree of pieces in moments in bases; groups of one are no groups."""
    leaves: list[_Part] = []
    outer: list[_Part] = []
    bases: dict[str, dict[str, list[tuple[Piece, _Part]]]] = {}
    for place, one in enumerate(pieces):
        # What samples count that say more than the rest. Chosen on the rows of PoCL a2d1: first
        # answers err by 9.1 / 5.1 % with 1 (mean / median), 8.9 / 5.0 % with 0.5 and 8.9 / 5.2 %
        # with 0.25.
        slow = 0.5 if one.kind is _SAMPLES else 1.0
        leaf = _Part(one.variance, (), 1.0, slow, one.log_seconds)
        leaves.append(leaf)
        if one.basis:
            moments = bases.setdefault(one.basis, {})
            moments.setdefault(one.moment or f"#{place}", []).append((one, leaf))
        else:
            outer.append(leaf)
    outer += [_make_basis([*moments.values()]) for moments in bases.values()]
    return leaves, _Part(0.0, tuple(outer))


def _make_basis(moments: Sequence[Sequence[tuple[Piece, _Part]]]) -> _Part:
    """Return a part with an error that all pieces share, and one that those of a moment do."""
    if len(moments) == 1 and len(moments[0]) == 1:
        return moments[0][0][1]
    shared = min(one.basis_variance for members in moments for one, _ in members)
    parts = []
    for members in moments:
        if len(members) == 1:
            moment, part = 0.0, members[0][1]
        else:
            moment = min(one.moment_variance for one, _ in members)
            part = _Part(max(moment, _NOTHING), tuple([leaf for _, leaf in members]))
        for one, leaf in members:
            leaf.spread = one.variance - moment - shared
        parts.append(part)
    if len(parts) > 1:
        return _Part(max(shared, _NOTHING), tuple(parts))
    parts[0].spread += shared
    return parts[0]


def _measure(pieces: Iterable[Piece], centre: float) -> list[float]:
    """Return squares of distances in standard deviations."""
    return [(one.log_seconds - centre) ** 2 / one.variance for one in pieces]


def _choose_start(pieces: Sequence[Piece]) -> float:
    """Return the piece's time that the likelihood of all is highest at."""
    counts: dict[tuple[str, str], int] = {}
    for one in pieces:
        key = (one.basis, one.moment)
        counts[key] = counts.get(key, 0) + 1
    weighed = [
        (one.log_seconds, 1.0 / one.variance,
         one.repeats / (counts[one.basis, one.moment] if one.basis and one.moment else 1))
        for one in pieces
    ]  # fmt: skip
    best, least = 0.0, float("inf")
    ran = [one for one in pieces if one.kind in _RAN]
    for centre in [
        one.log_seconds
        for one in sorted(ran or pieces, key=lambda one: one.kind is Kind.OTHER_SIZES)
    ]:
        cost = 0.0
        for told, precision, weight in weighed:
            square = (told - centre) ** 2 * precision
            if square > _SQUARE:
                # Beyond so many standard deviations a piece is wrong, however much: a factor of a
                # million is no reason to believe the sharper one of two. With 50 a single
                # observation that is wrong by 10 makes 28.5 % of an error of 10.4 % on Intel's
                # runtime, with 15 10.9 %; on PoCL a2d1 all are alike.
                square = _SQUARE * (1.0 + log(min(square, 15.0**2) / _SQUARE))
            # Between those that are all wrong, the one that is the least far from the others.
            cost += weight * (square + abs(told - centre))
            if cost >= least:
                break
        else:
            # Rounding chooses nobody.
            # Ties that rounding decides go to the first.
            best, least = centre, cost * (1.0 - 1e-9)
    return best
