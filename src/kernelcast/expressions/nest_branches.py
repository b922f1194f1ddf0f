"""What iterations of a nest with branches execute, for outcomes of its conditions on data."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from kernelcast.expressions.conditions import FALSE
from kernelcast.expressions.iteration_space import IterationSpace
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.expressions.symbols import Symbol
from kernelcast.records.operations import OperationCounts, add_weighted

_MOST_DECISIONS = 4
"""Of which all outcomes are tried; of more, that all hold and that none does."""


def list_outcomes(nest: LoopNest) -> Iterator[LoopNest]:
    """Give the nest as it is if each condition on data always holds, or never: all ways."""
    count = len(nest.decisions)
    every = (
        product((0, 1), repeat=count) if count <= _MOST_DECISIONS else ((0,) * count, (1,) * count)
    )
    for sides in every:
        yield decide(nest, dict(zip(nest.decisions, sides, strict=True)))


def decide(nest: LoopNest, sides: Mapping[Symbol, int]) -> LoopNest:
    """Give the nest with some conditions on data settled: 1 holds, 0 does not."""
    accesses = (replace(one, condition=one.condition.substitute(sides)) for one in nest.accesses)
    branches = [(one.substitute(sides), counts) for one, counts in nest.branches]
    never = [(counts, -1.0) for condition, counts in branches if condition == FALSE]
    return replace(
        nest,
        accesses=tuple(accesses),
        executed=add_weighted([(nest.executed, 1.0), *never]),
        branches=tuple(one for one in branches if one[0] != FALSE),
        decisions=tuple(one for one in nest.decisions if one not in sides),
    )


def weigh(nest: LoopNest, space: IterationSpace, *, has_masks: bool) -> OperationCounts:
    """Give the operations of a mean iteration.

    Parameters
    ----------
    nest : LoopNest
        With branches or without.
    has_masks : bool
        Whether vectors execute both sides where a condition changes from one iteration of the
        innermost loop to the next. What holds for none or all of them is jumped over anyhow.
    """
    share = space.share_of_rows if has_masks else space.share
    return add_weighted([
        (nest.executed, 1.0), *((counts, share(one) - 1) for one, counts in nest.branches)
    ])  # fmt: skip
