"""The linear model's error over sampling points, from what collections have sampled (Fig. 15)."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from kernelcast.records.observation import Observation
from kernelcast.records.observed_times import SampleSet
from kernelcast.records.sampling_points import SamplingPointScore
from kernelcast.training.settings import RowFilter

DEFAULT_LABEL = "default"
"""Stands for the samples that an estimate takes unless told otherwise."""


def score_sampling_points(
    observations: Iterable[Observation], rows: RowFilter | None = None
) -> tuple[SamplingPointScore, ...]:
    """Score the linear model from each choice of sampling points on each device.

    Parameters
    ----------
    observations : iterable of Observation
        Read once; each key counts once.
    rows : RowFilter, optional
        Launches that are judged.

    Returns
    -------
    tuple of SamplingPointScore
        By device; the points in their order, the default budget last. Sample sets from which the
        linear model has no answer are left out.
    """
    rows = rows or RowFilter()
    found: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    seen: set[str] = set()
    for one in observations:
        if one.key in seen or not rows.takes(one.seconds, _count_work_groups(one)):
            continue
        seen.add(one.key)
        for sample in one.samples:
            if sample.linear_s:
                device_and_point = (one.launch.device.id, sample.multiple)
                found[device_and_point].append(_score(sample, sample.linear_s, one.seconds))
    ordered = sorted(found, key=lambda key: (key[0], key[1] == 0, key[1]))
    return tuple(_summarise(device, point, found[device, point]) for device, point in ordered)


def _score(sample: SampleSet, linear_s: float, measured_s: float) -> tuple[float, float]:
    """Give error and cost of one sample set, as shares of the measured time."""
    return abs(linear_s - measured_s) / measured_s, sample.sampling_s / measured_s


def _count_work_groups(one: Observation) -> float:
    count = one.launch.work_group_count
    return math.nan if count is None else count


def _summarise(
    device: str, multiple: int, scores: Sequence[tuple[float, float]]
) -> SamplingPointScore:
    errors, costs = np.array(scores).T
    return SamplingPointScore(
        device=device,
        label=f"{multiple}, {multiple + 1}" if multiple else DEFAULT_LABEL,
        multiple=multiple,
        rows=len(errors),
        mean=float(errors.mean()),
        median=float(np.median(errors)),
        p90=float(np.quantile(errors, 0.9)),
        cost=float(np.median(costs)),
    )
