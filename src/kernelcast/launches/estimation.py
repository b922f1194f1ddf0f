"""From a prepared launch to an estimate: sample at moments, lay lines, say what it is worth."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from statistics import median

from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.linear import fit_moments, make_interval
from kernelcast.records.contention import NOTICEABLE, combine_contention, list_contention
from kernelcast.records.device import DeviceKind
from kernelcast.records.estimates import Estimate, Measurement, Tier
from kernelcast.records.explanation import Explanation, LinearFacts
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun
from kernelcast.sampling.host import ThreadsWaiting, find_waiting, read_waiting
from kernelcast.sampling.sampler import PreparedLaunch, Sampled, Sampler
from kernelcast.sampling.warmed_windows import WarmedSampler, open_sampler

ReportProgress = Callable[[str], None]

_SHORT_KERNEL_S = 0.01
_FEW_WORK_GROUPS = 64
# Slabs of the usual budget take up to a tenth.
_COSTLY_SHARE = 0.12
MOMENTS_APART_S = 0.05
"""Between two moments of a plan: what disturbs samples is another thing after 15 to 30 ms."""


class LaunchSampling:
    """Samples a launch at several moments; of a kernel's name alone, as even work."""

    def __init__(
        self,
        launch: PreparedLaunch,
        problem: Problem | str,
        settings: EstimateSettings,
        *,
        started_s: float | None = None,
        turn: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._launch, self._settings, self._turn = launch, settings, turn
        self._name = problem if isinstance(problem, str) else problem.kernel.name
        self._begun_s = time.perf_counter() if started_s is None else started_s
        self._ended_s = -math.inf
        self.runs: list[SampleRun] = []
        """The samples of each moment so far."""
        self._sampler: Sampler | WarmedSampler
        self._weigh: Callable[[SampleRun], SampleRun] = lambda run: run
        if isinstance(problem, str):
            self._sampler = open_sampler(launch, settings.plan)
        else:
            # Source analysis takes longer to import than samples to take.
            from kernelcast.launches.weighing import open_by_source

            self._sampler, self._weigh = open_by_source(launch, settings.plan, problem)

    def take_moment(self) -> bool:
        """Sample once more; tell whether there was anything left to sample."""
        with self._turn():
            run = self._sampler.take_moment()
        self._ended_s = time.perf_counter()
        if run is not None:
            self.runs.append(self._weigh(run))
        return run is not None

    def take_rest(self, *, wait: Callable[[float], None] = time.sleep) -> None:
        while len(self.runs) < self._settings.plan.moments:
            if self.runs and not self._sampler.has_more:
                return
            if self.runs:
                wait(max(0.0, self._ended_s + MOMENTS_APART_S - time.perf_counter()))
            if not self.take_moment():
                return

    def conclude(self) -> Estimate:
        overhead_s = time.perf_counter() - self._begun_s - sum(one.sampling_s for one in self.runs)
        found = estimate_runs(self._launch, self._name, self.runs, self._settings.coverage)
        return replace(found, overhead_seconds=max(overhead_s, 0.0))


def sample_launch(
    launch: PreparedLaunch,
    problem: Problem | str,
    settings: EstimateSettings,
    *,
    wait: Callable[[float], None] = time.sleep,
) -> tuple[Estimate, Sequence[SampleRun]]:
    sampling = LaunchSampling(launch, problem, settings)
    sampling.take_rest(wait=wait)
    return sampling.conclude(), sampling.runs


def estimate_runs(
    sampled: Sampled, kernel_name: str, runs: Sequence[SampleRun], coverage: float
) -> Estimate:
    """Lay a line through the samples of each moment, and put the lines together."""
    fit = fit_moments(runs)
    contention = combine_contention([one.contention for one in runs if one.contention])
    sampling_s = sum(one.sampling_s for one in runs)
    launches = [one for run in runs for one in run.launches]
    methods_s = {"linear": fit.seconds, "pooled_rate": fit.pooled_s}
    if fit.two_point_s is not None and fit.two_point_s > 0:
        methods_s["two_point"] = fit.two_point_s
    warnings = []
    if sampled.saturation.disagreement:
        warnings.append(sampled.saturation.disagreement)
    is_small = fit.seconds < _SHORT_KERNEL_S or sampled.ndrange.work_group_count < _FEW_WORK_GROUPS
    if is_small:
        warnings.append(
            f"the launch is small: sampling was made for at least {_FEW_WORK_GROUPS} work-groups "
            f"and {_SHORT_KERNEL_S * 1e3:.0f} ms"
        )
    if fit.lifted_s > 0.05 * fit.seconds:
        warnings.append(
            f"{fit.lifted_s / fit.seconds:.0%} of the time are not from samples: they found room "
            "in the L2 cache for what they stored; the whole launch waits for DRAM to take it"
        )
    if sampling_s > max(_COSTLY_SHARE * fit.seconds, 4e-3):  # nothing shorter is noticed
        warnings.append(
            f"sampling took more than {_COSTLY_SHARE:.0%} of the predicted time: there are too few "
            "work-groups, or too short ones, for less"
        )
    return Estimate(
        device=sampled.device.name,
        device_id=sampled.device.id,
        kernel=kernel_name,
        ndrange=sampled.ndrange,
        compute_units=sampled.device.compute_units,
        saturation=sampled.saturation,
        sample_work_groups=(fit.p1, fit.p2),
        sampled_work_groups=sum(one.sampled_work_groups for one in runs),
        interval=make_interval(fit, coverage=coverage),
        tier=Tier.LINEAR,
        estimates_s=methods_s,
        sampling_seconds=sampling_s,
        overhead_seconds=0.0,
        warnings=(*list_contention(contention), *warnings),
        in_domain=not is_small,
        launch_seconds=sampled.launch_overhead_s,
        explanation=Explanation(
            tier=Tier.LINEAR,
            interval="the spread of the samples, and what whole runs differ by beside it",
            linear=LinearFacts(
                p1=fit.p1,
                p2=fit.p2,
                launches=len(launches),
                intercept_s=fit.intercept_s,
                rate_s=fit.rate_s,
                standard_error_s=fit.standard_error_s,
                is_even=runs[-1].is_even,
                is_weighed=any(one.weight != 1 for one in launches),
            ),
            contention=contention,
        ),
    )


def measure(
    launch: PreparedLaunch,
    runs: int,
    *,
    report: ReportProgress = lambda _: None,
    expected_s: float = 0.0,
    ends_s: float = math.inf,
) -> Measurement | None:
    """Time whole runs until `ends_s` (`time.monotonic`); the first one warms up."""
    timed: list[tuple[float, float]] = []
    while len(timed) <= runs and time.monotonic() + 1.2 * expected_s <= ends_s:
        number = len(timed)
        report(f"measuring, run {number} of {runs}" if number else "measuring, warm-up")
        begun_s = time.monotonic()
        timed.append(time_whole(launch))
        expected_s = max(time.monotonic() - begun_s, expected_s if number > 1 else 0.0)
    if not timed:
        return None
    durations_s, slowdowns = zip(*(timed[1:] or timed), strict=True)
    return Measurement(durations_s=durations_s, slowdown=median(slowdowns))


def time_whole(launch: PreparedLaunch) -> tuple[float, float]:
    """Time a whole run; give its seconds and, on a CPU, how many times as long as alone it took."""
    # What threads waited while they filled buffers made no launch longer.
    readings: list[ThreadsWaiting] = []
    seconds = launch.time_whole(lambda: readings.append(read_waiting()))
    spent = find_waiting(readings[0], read_waiting(), seconds)
    slowdown = 1 + spent.waited_s / spent.worked_s if spent else 1.0
    is_told = launch.device.kind is DeviceKind.CPU and slowdown >= NOTICEABLE
    return seconds, slowdown if is_told else 1.0
