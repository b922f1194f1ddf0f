"""Why a kernel is predicted badly, as far as the numbers beside it tell."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kernelcast.service.pages.accuracy.scores import KernelScore
from kernelcast.service.pages.filters import write_signed_share

if TYPE_CHECKING:
    from kernelcast.reports.accuracy.judging import ExplainedError

# An error within twice the noise may be the measurement's own.
_NOISE_FACTOR: Final = 2.0
# The linear model is right below, and misled beyond.
_RIGHT: Final = 0.05
_MISLED: Final = 0.10
_MOSTLY: Final = 0.5
_FEW_ROWS: Final = 3
_LEAST_POINTS: Final = 0.01
_GROUPS: Final = 3
_LINEAR: Final = "linear"


def tell_reasons(
    score: KernelScore, method: str, explanations: Sequence["ExplainedError"] = ()
) -> tuple[str, ...]:
    """Say what the numbers tell of a kernel's error, the weightiest first."""
    if score.noise is not None and score.error <= score.noise:
        within = f"no more than its measured times vary, {score.noise * 100:.1f} %"
        return (within, *_tell_shift(score))
    found = [
        *_tell_noise(score),
        *_tell_shift(score),
        *_tell_domain(score),
        *_tell_linear(score, method),
        *_tell_groups(explanations),
        *_tell_intervals(score),
    ]
    if score.rows < _FEW_ROWS:
        found.append(f"only {_count(score.rows, 'launch', 'launches')}: this may be chance")
    return tuple(found) or (_tell_side(score),)


def _tell_noise(score: KernelScore) -> list[str]:
    if score.noise is None or score.noise * _NOISE_FACTOR < score.error:
        return []
    return [f"its measured times themselves vary by {score.noise * 100:.1f} %"]


def _tell_shift(score: KernelScore) -> list[str]:
    if score.shifted_at is None:
        return []
    return [f"its times have shifted for good on {score.shifted_at:%Y-%m-%d %H:%M} UTC"]


def _tell_domain(score: KernelScore) -> list[str]:
    if score.in_domain is None or score.in_domain > _MOSTLY * score.rows:
        return []
    outside = score.rows - score.in_domain
    return [f"{outside} of {score.rows} launches are unlike those that were learned from"]


def _tell_linear(score: KernelScore, method: str) -> list[str]:
    linear = score.linear_error
    if method == _LINEAR:
        return [f"the samples do not stand for the whole launch: {_tell_side(score)}"]
    if linear is None:
        return []
    if linear < _RIGHT < score.error:
        return [f"the samples were right (linear {linear * 100:.1f} %), the correction harmed"]
    if linear > _MISLED:
        done = "did not mend it" if score.error >= linear else "mended a part of it"
        return [f"the samples mislead (linear {linear * 100:.1f} %), the correction {done}"]
    return []


def _tell_groups(explanations: Sequence["ExplainedError"]) -> list[str]:
    if not explanations:
        return []
    one = explanations[0]
    shares = sorted(one.attribution.groups, key=lambda each: -abs(each.contribution))
    told = ", ".join(
        f"{each.group} {write_signed_share(each.contribution).removesuffix(' %')}"
        for each in shares[:_GROUPS]
        if abs(each.contribution) >= _LEAST_POINTS
    )
    needed = (
        f"corrected by {write_signed_share(one.attribution.correction)}, needed were "
        f"{write_signed_share(one.needed)}"
    )
    return [f"{needed}; features pushed by {told} points" if told else needed]


def _tell_intervals(score: KernelScore) -> list[str]:
    if score.inside is None:
        return []
    if score.inside == score.rows:
        return ["every measured time lies inside its interval: the answers said so"]
    return [f"outside their intervals: {score.rows - score.inside} of {score.rows} measured times"]


def _tell_side(score: KernelScore) -> str:
    side = "too short" if score.ratio < 1 else "too long"
    return f"predicted {side}, {score.ratio:.2f} times the measured time in the middle"


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
