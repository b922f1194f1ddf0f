"""Samples of one moment: what they say, and what foretells how wrong they are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.models.linear import fit_linear
from kernelcast.records.errors import InputError
from kernelcast.records.samples import SampleRun
from kernelcast.records.training_table import Numbers

SIGNS = (
    "error", "spread", "uneven", "imbalance", "is_imbalance_unknown", "indirect", "sampled_s",
    "intercept",
)  # fmt: skip
"""What the variance of a moment's samples depends on, see `read_moment`."""
MOMENT_FORM = "moment"
"""Of samples as an estimate takes them."""
_PENALTY = 0.1
_SMALLEST = 0.01
# A bias is halved where so few kernels tell it.
_KERNELS_OF_DOUBT = 10
# ln of the least and greatest standard deviation: 1 % and e.
_NARROWEST, _WIDEST = -4.5, 1.0
# Median of a squared standard normal variable.
_MEDIAN_SQUARE = 0.455
# An imbalance of source counts beyond this foretells no more.
_LARGEST_IMBALANCE = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMoment:
    """What samples of one moment say."""

    moment: str
    form: str
    """How samples were taken; each form has a bias and a variance of its own."""
    log_seconds: float
    """Natural logarithm of the whole launch's time in seconds, by the line through the samples."""
    signs: tuple[float, ...]
    at_s: float | None = None
    """When they were taken, in UNIX seconds; None where nobody has noted it."""
    is_busy: bool = False

    def __post_init__(self) -> None:
        if not math.isfinite(self.log_seconds) or not all(map(math.isfinite, self.signs)):
            msg = (
                f"moment {self.moment}: ln seconds {self.log_seconds}, signs {self.signs}; finite "
                "numbers are expected"
            )
            raise InputError(msg)
        if len(self.signs) != len(SIGNS):
            msg = f"moment {self.moment}: {len(self.signs)} signs; expected {len(SIGNS)}"
            raise InputError(msg)


def read_moment(
    run: SampleRun, *, moment: str, form: str, imbalance: float = math.nan, indirect: float = 0.0
) -> SampledMoment:
    """Fit the line through samples of one moment, and note what its error depends on."""
    fit = fit_linear(run)
    rates = [one.duration_s / one.mean_work_groups for one in run.launches]
    is_unknown = math.isnan(imbalance)
    shortest_s = min(one.duration_s for one in run.launches)
    return SampledMoment(
        moment=moment,
        form=form,
        log_seconds=math.log(fit.seconds),
        at_s=run.at_s or None,
        is_busy=run.contention is not None and run.contention.is_noticeable,
        signs=(
            math.log(fit.standard_error_s / fit.seconds + 0.005),
            math.log(float(np.std(np.log(rates))) + 0.01),
            0.0 if run.is_even else 1.0,
            0.0 if is_unknown else math.log(min(max(imbalance, 1.0), _LARGEST_IMBALANCE)),
            1.0 if is_unknown else 0.0,
            indirect,
            math.log(run.sampling_s),
            min(max(fit.intercept_s / shortest_s, 0.0), 1.0),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FormVariance:
    """Bias and variance of samples of one form; made by `fit_form`."""

    bias: float
    """Median of ln sampled over ln measured time."""
    level: float
    """ln of the usual standard deviation."""
    centre: tuple[float, ...]
    slopes: tuple[float, ...]
    """Of the signs; the slopes are of ln standard deviation."""

    def variance(self, signs: Sequence[float]) -> float:
        """Foretell the variance of a moment's logarithm."""
        found = self.level
        for sign, centre, slope in zip(signs, self.centre, self.slopes, strict=True):
            found += slope * (sign - centre)
        return math.exp(2.0 * min(max(found, _NARROWEST), _WIDEST))


def fit_form(residuals: Numbers, signs: Numbers, groups: npt.NDArray[np.intp]) -> FormVariance:
    """Learn bias and variance of a form from launches whose time was measured."""
    kernels = len(np.unique(groups))
    bias = float(np.median(residuals)) * kernels / (kernels + _KERNELS_OF_DOUBT)
    shares = 1.0 / np.bincount(groups)[groups]
    shares /= shares.sum()
    sizes = np.log(np.abs(residuals - bias) + _SMALLEST)
    level = float(shares @ sizes)
    centre = shares @ signs
    moved = signs - centre
    spread = np.sqrt(shares @ moved**2)
    spread[spread == 0] = 1.0
    moved /= spread
    penalty = _PENALTY * (1.0 + _KERNELS_OF_DOUBT / kernels)
    normal = moved.T @ (shares[:, None] * moved) + penalty * np.eye(signs.shape[1])
    slopes = np.linalg.solve(normal, moved.T @ (shares * (sizes - level)))
    usual = np.exp(np.clip(level + moved @ slopes, _NARROWEST, _WIDEST))
    level += 0.5 * math.log(np.median(((residuals - bias) / usual) ** 2) / _MEDIAN_SQUARE + 1e-12)
    return FormVariance(
        bias=bias,
        level=level,
        centre=tuple(centre.tolist()),
        slopes=tuple((slopes / spread).tolist()),
    )
