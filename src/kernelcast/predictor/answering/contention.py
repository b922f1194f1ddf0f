"""How long an answer's time beside other programs holds."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import overload

from kernelcast.records.contention import HOLDS_S, list_contention
from kernelcast.records.estimates import Estimate


@overload
def forget_old_contention(estimate: Estimate) -> Estimate: ...
@overload
def forget_old_contention(estimate: None) -> None: ...
def forget_old_contention(estimate: Estimate | None) -> Estimate | None:
    """Leave out of a kept answer what other programs did too long ago to hold now.

    The time alone stands; what they do now is not known without samples.
    """
    known = None if estimate is None else estimate.explanation
    if estimate is None or known is None or known.contention is None:
        return estimate
    age_s = (datetime.now(UTC) - known.contention.measured_at).total_seconds()
    if age_s <= HOLDS_S:
        return estimate
    old = list_contention(known.contention)
    return replace(
        estimate,
        warnings=tuple(one for one in estimate.warnings if one not in old),
        explanation=replace(known, contention=None),
    )
