"""Answers of the analytic model alone, with an interval that comes from somewhere.

The width comes from the first of these that there is: the errors of the analytic model in the
validation stored with the device's learned model, its errors on the device's own observations, or
an assumption. The assumption is a factor of 3 either way: the worst of the CPU model's answers to
18 examples on two devices was off by a factor of 2.8 (``benchmarks/results/cpu_model``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.spread import grouped_quantile
from kernelcast.predictor.answering.tasks import ModelOutcome
from kernelcast.predictor.answering.trained_models import FoundModel
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceError, KernelcastError
from kernelcast.records.estimates import Estimate, Interval, Tier
from kernelcast.records.explanation import Explanation
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.problem import Problem

ASSUMED_FACTOR = 3.0
"""Between the answer and the ends of its interval, where no error of the model is known."""
_FEWEST_KERNELS = 5
_METHOD = "analytic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far the analytic model may be off.

    Parameters
    ----------
    factor : float
        Between the answer and the ends of the interval, at least 1.
    origin : str
        Where it comes from.
    is_assumed : bool
        Whether nothing is known of the model's errors on the device.
    """

    factor: float
    origin: str
    is_assumed: bool = False


def find_spread(
    device_id: str,
    coverage: float,
    *,
    found: FoundModel | None,
    memory: Memory | None,
    schema: FeatureSchema,
) -> Spread:
    """Find how far the analytic model was off on a device.

    Parameters
    ----------
    device_id : str
        The device.
    coverage : float
        Share of true times that the interval shall hold.
    found : FoundModel or None
        The device's learned model: the validation in its file may have judged the analytic one.
    memory : Memory or None
        Observations.
    schema : FeatureSchema
        Of the features at hand.
    """
    for sizes, kernels, where in (
        (*_read_report(found, device_id), "the validation stored with the learned model"),
        (*_read_memory(memory, device_id, schema), "observations of this device"),
    ):
        if len(set(kernels)) >= _FEWEST_KERNELS:
            size, count = grouped_quantile(sizes, kernels, coverage)
            origin = f"the analytic model's errors on {count} kernels, {where}"
            return Spread(factor=math.exp(size), origin=origin)
    origin = (
        f"assumed: a factor of {ASSUMED_FACTOR:g} either way, since no errors of the analytic "
        f"model are known on this device (`kernelcast collect --device {device_id}` would tell)"
    )
    return Spread(factor=ASSUMED_FACTOR, origin=origin, is_assumed=True)


def answer_analytically(
    problem: Problem,
    device: DeviceDescription,
    outcome: ModelOutcome,
    spread: Spread,
    coverage: float,
) -> Estimate:
    """Make the estimate of what the model said.

    Raises
    ------
    DeviceError
        If the device was not calibrated.
    """
    found = outcome.analytic
    if found is None:
        msg = (
            f"{device.id}: no estimate without sampling: the device was not calibrated; "
            f"`kernelcast calibrate --device {device.id}` makes the description that the analytic "
            "model needs, or allow sampling"
        )
        raise DeviceError(msg)
    interval = Interval(
        seconds=found.seconds,
        low=found.seconds / spread.factor,
        high=found.seconds * spread.factor,
        coverage=coverage,
    )
    warnings = (f"the interval is {spread.origin}",) if spread.is_assumed else ()
    return Estimate(
        device=device.name,
        device_id=device.id,
        kernel=problem.kernel.name,
        ndrange=outcome.ndrange,
        compute_units=device.compute_units,
        saturation=None,
        sample_work_groups=(0, 0),
        sampled_work_groups=0,
        interval=interval,
        tier=Tier.ANALYTIC,
        estimates_s={_METHOD: found.seconds},
        sampling_seconds=0.0,
        overhead_seconds=0.0,
        warnings=warnings,
        limiter=found.limiter,
        explanation=Explanation(
            tier=Tier.ANALYTIC,
            interval=spread.origin,
            limiters=dict(found.limiters),
            notes=(*outcome.notes, *found.notes),
        ),
    )


def _read_report(found: FoundModel | None, device_id: str) -> tuple[list[float], list[str]]:
    report = None if found is None else found.stored.report
    if report is None:
        return [], []
    rows = report.rows
    answers = next((one for one in rows.models if one.model == _METHOD), None)
    if answers is None:
        return [], []
    known = [
        (abs(math.log(measured_s / seconds)), kernel)
        for measured_s, seconds, kernel, device in zip(
            rows.measured_s, answers.seconds, rows.kernels, rows.devices, strict=True
        )
        if device == device_id and seconds is not None and seconds > 0
    ]
    return _unzip(known)


def _read_memory(
    memory: Memory | None, device_id: str, schema: FeatureSchema
) -> tuple[list[float], list[str]]:
    if memory is None:
        return [], []
    try:
        return memory.list_analytic_errors(device_id, schema)
    except KernelcastError:  # a store that does not answer costs the width, not the answer
        return [], []


def _unzip(pairs: Sequence[tuple[float, str]]) -> tuple[list[float], list[str]]:
    return [size for size, _ in pairs], [kernel for _, kernel in pairs]
