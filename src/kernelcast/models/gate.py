"""Decides how much of a learned correction to believe.

In the paper's Table 3 the learned model makes the kernels worse that the linear model predicts
within 5 % (1.88 to 2.36 %). Here a correction is believed as far as it beat the linear model on
groups that its fit had not seen: it is shrunk by a factor, small corrections are left out, and
far from the training's launches it fades.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from kernelcast.records.training_table import Numbers

WELL_PREDICTED = 0.05
"""Error up to which the linear model needs no help: the first class of the paper's Table 3."""
_SHARES = (1.0, 0.85, 0.7, 0.5, 0.3)
_THRESHOLDS = (0.0, 0.02, 0.04, 0.08)
_FADES = (0.0, 1.0)
# What helps on average may cost the well-predicted class at most so much, in relative error,
# times all groups over those of the class: of three such groups among fifty less can be told.
_HARM_ALLOWED = 0.0005
# A reference that is far off nearly everywhere still hits a few by chance. They must not keep the
# others from being helped: so few may cost a fiftieth of what all groups gain.
_BY_CHANCE = 0.1
_HARM_PER_GAIN = 0.02
# A gain smaller than its own standard error over the groups is no gain.
_LEAST_GAIN = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """How a correction is shrunk."""

    share: float
    """Factor of the correction, between 0 (the reference alone) and 1."""
    threshold: float
    """Corrections below it are left out; larger ones lose as much."""
    fade: float
    """How fast corrections fade beyond the domain."""

    def apply(self, corrections: Numbers, domain_distance: Numbers) -> Numbers:
        """Shrink corrections.

        Parameters
        ----------
        corrections : ndarray, shape (n,)
            Logarithms of measured over reference time, as predicted.
        domain_distance : ndarray, shape (n,)
            Distance to the training over its reach: above 1 is outside.
        """
        kept = np.maximum(np.abs(corrections) - self.threshold, 0.0)
        near = np.exp(-self.fade * np.maximum(domain_distance - 1.0, 0.0))
        found: Numbers = np.copysign(kept * self.share * near, corrections)
        return found


CLOSED = Gate(share=0.0, threshold=0.0, fade=0.0)
"""Believes nothing."""
OPEN = Gate(share=1.0, threshold=0.0, fade=0.0)
"""Believes everything."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What is known of unseen groups."""

    corrections: Numbers
    """Shape (settings, n). Predicted out of fold, by each of several settings."""
    targets: Numbers
    """Shape (n,). Logarithms of measured over reference time."""
    domain_distance: Numbers
    """Shape (n,). To the points of other groups."""
    groups: npt.NDArray[np.intp]
    """Shape (n,). Number of each row's group."""

    def take(self, rows: npt.NDArray[np.bool_]) -> "Evidence":
        """Give some rows."""
        return Evidence(
            corrections=self.corrections[:, rows],
            targets=self.targets[rows],
            domain_distance=self.domain_distance[rows],
            groups=self.groups[rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A setting and its gate."""

    setting: int
    gate: Gate
    error: float


def choose(evidence: Evidence, *, is_gated: bool) -> Choice:
    """Choose the setting and the gate that predict unseen groups best.

    Parameters
    ----------
    evidence : Evidence
        Out-of-fold predictions of every setting.
    is_gated : bool
        Whether to shrink at all; without, the best setting is believed everywhere.

    Returns
    -------
    Choice
        The closed gate where no setting beats the reference on unseen groups.
    """
    without = _relative_errors(np.zeros_like(evidence.targets), evidence.targets)
    best = None
    for setting, corrections in enumerate(evidence.corrections):
        for gate in _list_gates() if is_gated else (OPEN,):
            shrunk = gate.apply(corrections, evidence.domain_distance)
            errors = _relative_errors(shrunk, evidence.targets)
            error = float(errors.mean())
            if best is not None and error >= best.error:
                continue
            if not is_gated or _is_gain(errors, without, evidence.groups):
                best = Choice(setting=setting, gate=gate, error=error)
    return best or Choice(setting=0, gate=CLOSED, error=float(without.mean()))


def _list_gates() -> Iterator[Gate]:
    for share, threshold, fade in product(_SHARES, _THRESHOLDS, _FADES):
        yield Gate(share=share, threshold=threshold, fade=fade)


def _relative_errors(corrections: Numbers, targets: Numbers) -> Numbers:
    """Give |predicted - measured| / measured."""
    found: Numbers = np.abs(np.expm1(np.clip(corrections - targets, -20.0, 20.0)))
    return found


def _is_gain(errors: Numbers, without: Numbers, groups: npt.NDArray[np.intp]) -> bool:
    """Tell whether groups gain more than by chance, and the well-predicted lose next to nothing."""
    sizes = np.bincount(groups)
    present = sizes > 0
    gains = np.bincount(groups, weights=without - errors)[present] / sizes[present]
    if len(gains) < 2 or gains.mean() < _LEAST_GAIN * gains.std(ddof=1) / np.sqrt(len(gains)):
        return False
    by_group = np.bincount(groups, weights=without)[present] / sizes[present]
    well = by_group < WELL_PREDICTED
    allowed = _HARM_ALLOWED * len(gains)
    if well.mean() < _BY_CHANCE:
        allowed = max(allowed, _HARM_PER_GAIN * float(gains.sum()))
    return not well.any() or float(-gains[well].sum()) <= allowed
