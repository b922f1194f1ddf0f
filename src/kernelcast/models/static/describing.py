"""What the static model sees of a launch: numbers that stay when the launch does more of the same.

No count of work-items, no size of a buffer and no time is among them. Collections choose sizes by
how long they take, so that a model which sees the size learns that choice instead of the kernel:
always answering the median time of a device's shipped rows errs by 25 to 44 % in the median.
"""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np

from kernelcast.records.training_table import Numbers

ESTIMATE = "analytic.estimate_s"
"""The time that the model corrects."""
_LARGEST = "analytic.largest_limiter_ratio"
_LIMITERS = (
    "fp32", "fp64", "int", "special", "l1", "l2", "l3", "dram", "latency", "chain", "atomics",
    "barriers", "dispatch",
)  # fmt: skip
_INSTRUCTIONS = "counters.executed_instructions_per_work_item"
_OPERATIONS = (
    "fp32_add", "fp32_multiply", "fp32_multiply_add", "fp32_divide", "fp32_compare", "fp32_select",
    "fp32_special", "fp64_operations", "int8_operations",
    "int16_operations", "int32_add", "int32_multiply", "int32_divide", "int32_logic",
    "int32_compare", "int32_select", "int64_operations", "flops", "conversions", "address",
    "branches", "jumps", "barriers", "atomics", "global_loads",
    "global_stores", "constant_loads", "local_loads", "local_stores", "private_loads",
    "private_stores",
)  # fmt: skip
_RATIOS = (
    "counters.lane_efficiency_ratio", "counters.loop_imbalance_ratio",
    "counters.global_sectors_per_request", "counters.global_sector_excess_ratio",
    "counters.lanes_per_operation", "counters.operations_per_byte",
    "static.quasi_affine_access_ratio", "static.polynomial_access_ratio",
    "static.indirect_access_ratio", "static.guarded_access_ratio", "static.coverage_ratio",
    "static.fp64_flag", "static.work_items_per_work_group", "analytic.vector_work_items_count",
    _LARGEST,
)  # fmt: skip
_ATOMICS, _SPECIAL = 0.25, 0.3
_LEAST_SHARE = 0.01
_LOG_LEAST_SHARE = math.log(_LEAST_SHARE)
_LEAST_RATIO = 0.05

NAMES: tuple[str, ...] = (
    *(f"{one}_limiter_of_estimate" for one in _LIMITERS),
    *(f"{one}_of_instructions" for one in _OPERATIONS),
    *_RATIOS,
)  # fmt: skip
"""In the order of `describe`."""
OF_TIMES = (*range(len(_LIMITERS)), NAMES.index(_LARGEST))
"""Columns that the analytic time and its limiters decide."""


class Workload(StrEnum):
    """What kind of work a launch does, by its features."""

    ATOMICS = "atomics"
    SPARSE = "sparse"
    SPECIAL = "special functions"
    BRANCHING = "branching"
    REDUCTION = "reductions"
    DENSE = "dense"
    STENCIL = "stencil"
    STREAMING = "streaming"


def describe(features: Mapping[str, float]) -> Numbers:
    """Give the columns of a launch, shape (names,).

    Parameters
    ----------
    features : mapping of str to float
        Of the feature vector; what is absent counts as none.
    """
    read = _reader(features)
    instructions = max(read(_INSTRUCTIONS), 1.0)
    limiters = {one: read(f"analytic.{one}_limiter_s") for one in _LIMITERS}
    *shares, largest = describe_times(read(ESTIMATE), limiters, read(_LARGEST))
    return np.array(
        [
            *shares,
            *(
                _log_share(read(f"counters.{one}_per_work_item"), instructions)
                for one in _OPERATIONS
            ),
            *(largest if one == _LARGEST else _log_ratio(read(one)) for one in _RATIOS),
        ]
    )


def describe_times(
    estimate_s: float, limiters: Mapping[str, float], largest_ratio: float
) -> list[float]:
    """Give the columns `OF_TIMES`: all that another size of the same work changes.

    Parameters
    ----------
    estimate_s : float
        The analytic time.
    limiters : mapping of str to float
        Its limiters in seconds, names in lower case.
    largest_ratio : float
        The largest of them over the estimate.
    """
    estimate_s = max(estimate_s, 1e-12)
    found = dict.fromkeys(_LIMITERS, _LOG_LEAST_SHARE)
    for name, seconds in limiters.items():
        if seconds and name in found:
            found[name] = _log_share(seconds, estimate_s)
    return [*found.values(), _log_ratio(largest_ratio)]


def classify(features: Mapping[str, float]) -> Workload:
    """Say what kind of work a launch does; the first that fits of `Workload`.

    Examples
    --------
    >>> classify({"static.indirect_access_ratio": 0.5}).value
    'sparse'
    """
    read = _reader(features)
    estimate_s = max(read(ESTIMATE), 1e-12)

    def share(limiter: str) -> float:
        return read(f"analytic.{limiter}_limiter_s") / estimate_s

    barriers = read("counters.barriers_per_work_item")
    shared = read("static.local_bytes_per_work_group") > 0
    rules = {
        Workload.ATOMICS: share("atomics") >= _ATOMICS,
        Workload.SPARSE: read("static.indirect_access_ratio") > 0,
        Workload.SPECIAL: share("special") >= _SPECIAL,
        Workload.BRANCHING: 0 < read("counters.lane_efficiency_ratio") < 0.85,
        Workload.REDUCTION: shared and barriers > 1 and read("counters.operations_per_byte") < 8,
        Workload.DENSE: read("counters.operations_per_byte") >= 8,
        Workload.STENCIL: read("counters.global_loads_per_work_item") >= 4,
    }
    return next((kind for kind, holds in rules.items() if holds), Workload.STREAMING)


def classify_by_times(
    otherwise: Workload, estimate_s: float, limiters: Mapping[str, float]
) -> Workload:
    """Say what kind of work it is by limiters, where all else is known.

    Parameters
    ----------
    otherwise : Workload
        As `classify` says of it without any limiter.
    estimate_s, limiters
        As of `describe_times`.
    """
    if limiters.get("atomics", 0.0) / estimate_s >= _ATOMICS:
        return Workload.ATOMICS
    is_special = limiters.get("special", 0.0) / estimate_s >= _SPECIAL
    return Workload.SPECIAL if is_special and otherwise is not Workload.SPARSE else otherwise


def _log_ratio(value: float) -> float:
    return math.log(_LEAST_RATIO + max(value, 0.0))


def _reader(features: Mapping[str, float]) -> Callable[[str], float]:
    def read(name: str) -> float:
        value = features.get(name, 0.0)
        return value if math.isfinite(value) else 0.0

    return read


def _log_share(part: float, whole: float) -> float:
    return math.log(_LEAST_SHARE + min(max(part / whole, 0.0), 10.0))
