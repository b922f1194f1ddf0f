"""What a validation's page shows of each device, taken out of the report."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelcast.models.validation.report import DeviceScore, GroupScore, ValidationReport
from kernelcast.records.frames import Frame

_FAVOURITE = "hybrid"
_BASELINE = "linear"
_MOST_WORST = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceContent:
    """One device."""

    scores: tuple[DeviceScore, ...]
    """Of every model."""
    chosen: DeviceScore
    """Of the model that the pictures show."""
    noise: float | None
    rows: Frame
    """Rows that the chosen model answered, as `ValidatedRows.to_frame` has them; ``is_inside``
    tells whether the measured time lies inside the interval, ``noise`` is NaN where the measured
    time's own is not known."""

    @property
    def device(self) -> str:
        """Its id."""
        return self.chosen.device

    @property
    def bars(self) -> list[GroupScore]:
        """Groups with a linear error."""
        return [one for one in self.chosen.groups if one.linear_error is not None]

    @property
    def worst(self) -> Frame:
        """The groups on which the chosen model errs most, with what may excuse it, worst first."""
        groups = self.rows.groupby("group").agg(
            rows=("error", "size"), noise=("noise", "mean"), inside=("is_inside", "sum"),
            in_domain=("in_domain", "sum"),
        )  # fmt: skip
        worst = self.chosen.groups[:_MOST_WORST]
        return groups.reindex([one.group for one in worst]).assign(
            error=[one.error for one in worst],
            linear_error=np.array([one.linear_error for one in worst], dtype=np.float64),
        )


def choose_model(report: ValidationReport) -> str:
    """Give the model that pictures show: the hybrid, else the last that is not the linear one."""
    names = report.models
    if _FAVOURITE in names:
        return _FAVOURITE
    return next((one for one in reversed(names) if one != _BASELINE), names[-1])


def gather(
    report: ValidationReport, chosen: str, noise: Mapping[str, float]
) -> list[DeviceContent]:
    """Gather what is shown of each device; `noise` by the rows' keys, as far as it is known."""
    rows = report.to_frame()
    rows = rows[(rows["model"] == chosen) & rows["error"].notna()]
    rows = rows.assign(
        noise=[noise.get(key, np.nan) for key in rows["key"]],
        is_inside=rows["measured_s"].between(rows["low_s"], rows["high_s"]),
    )
    found = []
    for device in report.devices:
        scores = tuple(one for one in report.scores if one.device == device)
        found.append(
            DeviceContent(
                scores=scores,
                chosen=report.score(chosen, device),
                noise=next((one.noise for one in scores if one.noise is not None), None),
                rows=rows[rows["device"] == device],
            )
        )
    return found
