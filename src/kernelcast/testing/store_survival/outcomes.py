"""What sequences have come to."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one sequence."""

    seed: int
    steps: dict[str, int]
    """How often each kind of step was taken."""
    acknowledged: int
    """Rows that a service or a command had said to be stored."""
    lost: int
    """How many of them are not there."""
    tokens_acknowledged: int
    """Tokens made or revoked."""
    tokens_lost: int
    """How many of those changes are not there."""
    damage: list[str]
    """What the database found wrong with itself."""
    trouble: list[str]
    """Answers and exit statuses that should not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What became of many sequences; counts as in `Outcome`."""

    sequences: int
    steps: dict[str, int]
    rows_acknowledged: int
    rows_lost: int
    tokens_acknowledged: int
    tokens_lost: int
    integrity_checks: int
    integrity_checks_clean: int
    sequences_with_loss_or_damage: list[int]
    sequences_with_trouble: list[int]
    trouble: list[str]


def summarise(outcomes: Iterable[Outcome]) -> Summary:
    """Add outcomes up."""
    found = sorted(outcomes, key=lambda one: one.seed)
    steps: Counter[str] = Counter()
    for one in found:
        steps.update(one.steps)
    return Summary(
        sequences=len(found),
        steps=dict(sorted(steps.items())),
        rows_acknowledged=sum(one.acknowledged for one in found),
        rows_lost=sum(one.lost for one in found),
        tokens_acknowledged=sum(one.tokens_acknowledged for one in found),
        tokens_lost=sum(one.tokens_lost for one in found),
        integrity_checks=len(found),
        integrity_checks_clean=sum(not one.damage for one in found),
        sequences_with_loss_or_damage=[
            one.seed for one in found if one.lost or one.tokens_lost or one.damage
        ],
        sequences_with_trouble=[one.seed for one in found if one.trouble],
        trouble=[f"{one.seed}: {text}" for one in found for text in one.trouble][:20],
    )
