"""The linear model's error over sampling points, from what collections have sampled (Fig. 15)."""

import math
from collections.abc import Iterable

import pandas as pd

from kernelcast.records.observation import Observation
from kernelcast.training.settings import RowFilter

_SCORED = {
    "rows": ("error", "size"),
    "mean": ("error", "mean"),
    "median": ("error", "median"),
    "p90": ("error", lambda errors: errors.quantile(0.9)),
    "cost": ("cost", "median"),
}
COLUMNS = ("device", "label", "multiple", *_SCORED)


def score_sampling_points(
    observations: Iterable[Observation], rows: RowFilter | None = None
) -> pd.DataFrame:
    """Score the linear model from each choice of sampling points on each device.

    Returns
    -------
    DataFrame
        `COLUMNS`, the default samples last. ``label``: the two points in multiples of the
        work-groups that a device runs at once (``"1, 2"`` to ``"5, 6"``), or ``"default"`` for the
        samples that an estimate takes unless told otherwise; ``multiple``: the first point's, 0
        for the default; ``rows``: predictions, which are launches times the sets of windows that
        each was sampled with; ``mean``, ``median``, ``p90``: of the errors; ``cost``: median of
        the samples' device time over the whole launch's.
    """
    rows = rows or RowFilter()
    by_key: dict[str, Observation] = {}
    for one in observations:
        by_key.setdefault(one.key, one)
    found = [
        {
            "device": one.launch.device.id,
            "is_default": sample.multiple == 0,
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
        return pd.DataFrame(columns=COLUMNS)
    points = pd.DataFrame(found).groupby(["device", "is_default", "multiple"])
    scores = points.agg(**_SCORED).reset_index()
    labels = [f"{one}, {one + 1}" if one else "default" for one in scores["multiple"]]
    return scores.assign(label=labels)[[*COLUMNS]]
