"""What samples of an estimate say, moment by moment; made where they were taken."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kernelcast.models.evidence.moments import MOMENT_FORM, SampledMoment, read_moment
from kernelcast.predictor.answering.tasks import LaunchFacts
from kernelcast.records.samples import SampleRun, pool_moments

MOST_MOMENTS: Final = 8
"""Of a launch: more say little more."""


def append_moments(
    before: Iterable[SampledMoment], more: Iterable[SampledMoment]
) -> tuple[SampledMoment, ...]:
    """Put samples behind earlier ones of the launch."""
    newest = [*before, *more][-MOST_MOMENTS:]
    return tuple(replace(one, moment=str(number)) for number, one in enumerate(newest, start=1))


def read_moments(
    runs: Iterable[SampleRun], facts: LaunchFacts | None = None
) -> tuple[SampledMoment, ...]:
    """Read samples of a launch, those of each moment by themselves as far as they tell of all."""
    values = facts.values if facts else {}
    return tuple(
        read_moment(
            run,
            moment=str(number),
            form=MOMENT_FORM,
            imbalance=values.get("counters.loop_imbalance_ratio", math.nan),
            indirect=values.get("static.indirect_access_ratio", 0.0),
        )
        for number, run in enumerate(pool_moments(list(runs)), start=1)
    )
