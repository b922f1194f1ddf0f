"""From a prepared launch to an estimate: sample, fit the line, say what it is worth."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.linear import LinearFit, fit_linear, make_interval
from kernelcast.records.arguments import Argument
from kernelcast.records.contention import list_contention
from kernelcast.records.estimates import Estimate, Measurement, Tier
from kernelcast.records.explanation import Explanation, LinearFacts
from kernelcast.records.kernel import Kernel
from kernelcast.records.samples import SampleRun
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import sample

ReportProgress = Callable[[str], None]
"""Takes a sentence about the stage that begins."""

_SHORT_KERNEL_S = 0.01
_FEW_WORK_GROUPS = 64
_COSTLY_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledEstimate:
    """An estimate with the plan, the samples and the line behind it."""

    estimate: Estimate
    plan: SamplingPlan
    run: SampleRun
    fit: LinearFit


def sample_launch(  # noqa: PLR0913 - a launch, how, and what is told on the way
    launch: PreparedLaunch,
    kernel: Kernel | str,
    settings: EstimateSettings,
    *,
    arguments: Sequence[Argument] = (),
    weights: Sequence[float] = (),
    is_planned: bool = False,
    report: ReportProgress = lambda _: None,
    started_s: float | None = None,
) -> SampledEstimate:
    """Predict the time of a whole launch, and measure it where that is asked for.

    Places are planned and samples weighed by what the source says of the work-groups, then the
    line is laid through them.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch, built, on its device.
    kernel : Kernel or str
        Its kernel; a name alone tells nothing of the work, and work-groups count as equal.
    settings : EstimateSettings
        Budget, coverage, measurement.
    arguments : sequence of Argument
        Of the launch.
    weights : sequence of float
        Of the samples, where a recording has them and no source is known.
    is_planned : bool
        Whether the settings' plan is that of an earlier sampling of the launch.
    report : callable, optional
        Is told of each stage.
    started_s : float, optional
        `time.perf_counter` at which preparation began, so that the overhead counts it.

    Raises
    ------
    PersistentKernelError
        If work-groups fetch their work.
    DeviceError
        If the device fails.
    """
    begin = time.perf_counter() if started_s is None else started_s
    report("sampling")
    plan = settings.plan
    # Source analysis takes longer to import than samples to take.
    if isinstance(kernel, str):
        run = sample(launch, plan)
        if weights:
            from kernelcast.launches.weighing import apply_weights

            run = apply_weights(run, weights)
    else:
        from kernelcast.launches.weighing import sample_as_planned

        plan, run = sample_as_planned(launch, plan, kernel, arguments, is_planned=is_planned)
    fit = fit_linear(run)
    interval = make_interval(fit, coverage=settings.coverage)
    overhead_s = time.perf_counter() - begin - run.sampling_s
    estimate = Estimate(
        device=launch.device.name,
        device_id=launch.device.id,
        kernel=kernel if isinstance(kernel, str) else kernel.name,
        ndrange=launch.ndrange,
        compute_units=launch.device.compute_units,
        saturation=launch.saturation,
        sample_work_groups=(fit.p1, fit.p2),
        sampled_work_groups=run.sampled_work_groups,
        interval=interval,
        tier=Tier.LINEAR,
        estimates_s=_methods(fit),
        sampling_seconds=run.sampling_s,
        overhead_seconds=max(overhead_s, 0.0),
        warnings=tuple(_warn(launch, run, fit)),
        in_domain=not _is_too_small(run, fit),
        launch_seconds=launch.launch_overhead_s,
        explanation=Explanation(
            tier=Tier.LINEAR,
            interval="the spread of the samples, and what whole runs differ by beside it",
            linear=_describe(run, fit),
            contention=run.contention,
        ),
    )
    if settings.measure:
        measured = measure(launch, settings.measured_runs, report=report)
        estimate = replace(estimate, measurement=measured)
    return SampledEstimate(estimate=estimate, plan=plan, run=run, fit=fit)


def measure(
    launch: PreparedLaunch, runs: int, *, report: ReportProgress = lambda _: None
) -> Measurement:
    """Time whole runs of the unchanged kernel; one more at first, not counted, warms up."""
    report("measuring, warm-up")
    launch.time_whole()
    durations = []
    for number in range(1, runs + 1):
        report(f"measuring, run {number} of {runs}")
        durations.append(launch.time_whole())
    return Measurement(durations_s=tuple(durations))


def _methods(fit: LinearFit) -> dict[str, float]:
    """List every answer there is, best last named in the docs; none is made up."""
    methods = {"linear": fit.seconds, "pooled_rate": fit.pooled_s}
    if fit.two_point_s is not None and fit.two_point_s > 0:
        methods["two_point"] = fit.two_point_s
    return methods


def _describe(run: SampleRun, fit: LinearFit) -> LinearFacts:
    return LinearFacts(
        p1=fit.p1,
        p2=fit.p2,
        launches=len(run.launches),
        intercept_s=fit.intercept_s,
        rate_s=fit.rate_s,
        standard_error_s=fit.standard_error_s,
        is_even=run.is_even,
        is_weighed=any(one.weight != 1 for one in run.launches),
    )


def _is_too_small(run: SampleRun, fit: LinearFit) -> bool:
    return fit.seconds < _SHORT_KERNEL_S or run.ndrange.work_group_count < _FEW_WORK_GROUPS


def _warn(launch: PreparedLaunch, run: SampleRun, fit: LinearFit) -> list[str]:
    warnings = list_contention(run.contention)
    if launch.saturation.disagreement:
        warnings.append(launch.saturation.disagreement)
    if _is_too_small(run, fit):
        warnings.append(
            f"the launch is small ({run.ndrange.work_group_count} work-groups, about "
            f"{fit.seconds * 1e3:.2g} ms): sampling was made for at least {_FEW_WORK_GROUPS} "
            f"work-groups and {_SHORT_KERNEL_S * 1e3:.0f} ms"
        )
    share = run.sampling_s / fit.seconds
    if share > _COSTLY_SHARE:
        warnings.append(
            f"sampling took {share:.0%} of the predicted time: there are too few work-groups, or "
            "too short ones, for less"
        )
    return warnings
