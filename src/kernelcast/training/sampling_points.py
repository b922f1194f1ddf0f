"""The linear model's error over sampling points, from what collections have sampled (Fig. 15)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kernelcast.records.observation import Observation
from kernelcast.training.settings import RowFilter

DEFAULT_LABEL = "default"
"""Stands for the samples that an estimate takes unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPointScore:
    """The linear model's errors on one device, from one choice of samples (the paper's Fig. 15)."""

    device: str
    label: str
    """The two points in multiples of the work-groups that a device runs at once (``"1, 2"`` to
    ``"5, 6"``), or ``"default"`` for the samples that an estimate takes unless told otherwise."""
    multiple: int
    """The first point's multiple; 0 for the default samples."""
    rows: int
    """Number of predictions: launches, times the sets of windows that each was sampled with."""
    mean: float
    median: float
    p90: float
    """Arithmetic mean and quantiles of the errors."""
    cost: float
    """Median of the samples' device time over the whole launch's."""


def score_sampling_points(
    observations: Iterable[Observation], rows: RowFilter | None = None
) -> tuple[SamplingPointScore, ...]:
    """Score the linear model from each choice of sampling points on each device."""
    rows = rows or RowFilter()
    by_key: dict[str, Observation] = {}
    for one in observations:
        by_key.setdefault(one.key, one)
    found = [
        {
            "device": one.launch.device.id,
            "multiple": sample.multiple,
            # As shares of the measured time.
            "error": abs(sample.linear_s - one.seconds) / one.seconds,
            "cost": sample.sampling_s / one.seconds,
        }
        for one in by_key.values()
        if rows.takes(one.seconds, one.launch.work_group_count or math.nan)
        for sample in one.samples
        if sample.linear_s
    ]
    if not found:
        return ()
    points = pd.DataFrame(found).groupby(["device", "multiple"])
    scores = points.agg(
        rows=("error", "size"), mean=("error", "mean"), median=("error", "median"),
        p90=("error", lambda errors: errors.quantile(0.9)), cost=("cost", "median"),
    ).reset_index()  # fmt: skip
    scores = scores.iloc[
        np.lexsort((scores["multiple"], scores["multiple"] == 0, scores["device"]))
    ]
    return tuple(
        SamplingPointScore(
            label=f"{one['multiple']}, {one['multiple'] + 1}" if one["multiple"] else DEFAULT_LABEL,
            **{str(name): one[name] for name in one},
        )
        for one in scores.to_dict("records")
    )
