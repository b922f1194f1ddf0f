"""What ``kernelcast estimate`` was asked, checked before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from kernelcast.cli import options as option
from kernelcast.launches.settings import (
    DEFAULT_TIMEOUT_S,
    EstimateSettings,
)
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.reports.targets import check_target
from kernelcast.sampling.plan import SamplingPlan

_DEFAULTS: Final = EstimateSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """Options of ``kernelcast estimate``."""

    problem_files: tuple[Path, ...] = option.argument("P.yaml...", required=False)
    device_ids: tuple[str, ...] = option.use(option.device)
    measure: bool = option.given(
        "--measure", "Also time whole runs of the kernel and show the error."
    )
    runs: int = option.given(
        "--runs N",
        "Whole runs timed by --measure, after one that is not counted.",
        default=_DEFAULTS.measured_runs, type=option.COUNT,
    )  # fmt: skip
    budget: float = option.given(
        "--budget SHARE",
        "Device time that sampling may take, as a share of the predicted time (of launches below "
        "0.1 s 4 ms at least, or half of a shorter one): above 0, at most 1.",
        default=_DEFAULTS.plan.budget,
    )
    coverage: float = option.given(
        "--coverage SHARE",
        "Share of true times that the interval shall hold: between 0 and 1.",
        default=DEFAULT_COVERAGE,
    )
    seed: int = option.use(option.seed)
    parameters: Mapping[str, int | float] = option.use(option.parameters)
    timeout_s: float = option.given(
        "--timeout SECONDS",
        "Time limit in seconds for each problem on each device, build and measurement included; "
        "the process that runs the kernel is stopped then.",
        default=DEFAULT_TIMEOUT_S,
    )
    within_s: float | None = option.given(
        "--within SECONDS",
        "Wait so long for each answer, builds and all else included, at most 60 s: the best that "
        "is known by then answers, by samples if they fit, and its warnings say why it has none.",
    )
    least_gain: float = option.use(option.least_gain)
    no_history: bool = option.given(
        "--no-history",
        "Let nothing older count: no observation of this launch or of other sizes, no samples.",
    )
    no_sampling: bool = option.given(
        "--no-sampling",
        "Run nothing: answer from earlier observations, or from the source by the analytic model "
        "of a calibrated device.",
    )
    explain: bool = option.given(
        "--explain",
        "Say how each answer was obtained, and why not in a better way. With --json it is always "
        "there.",
    )
    as_json: bool = option.use(option.json_list)
    record_file: Path | None = option.given(
        "--record FILE", "Write the raw samples to FILE (JSON), for --replay."
    )
    replay_file: Path | None = option.given(
        "--replay FILE",
        "Answer from the samples in FILE instead of from devices, with the budget and seed they "
        "were recorded with. Without P.yaml, all that is in FILE.",
    )
    plot_file: Path | None = option.given(
        "--plot FILE.png",
        "Draw predicted times with their intervals, beside measured ones, to FILE (png, pdf, svg); "
        "needs kernelcast[plot].",
    )

    def __post_init__(self) -> None:
        if not self.problem_files and self.replay_file is None:
            msg = "give at least one problem file, for example `kernelcast estimate P.yaml`"
            raise click.UsageError(msg)
        if self.no_sampling and (self.measure or self.record_file or self.replay_file):
            msg = "--no-sampling runs nothing: leave out --measure, --record and --replay"
            raise click.UsageError(msg)
        if self.record_file is not None:
            check_target(self.record_file)
        if self.plot_file is not None:
            from kernelcast.reports.drawing import check_plot  # loads NumPy

            check_plot(self.plot_file)

    def settings(self) -> EstimateSettings:
        """Make the settings of every estimate."""
        return EstimateSettings(
            plan=SamplingPlan(budget=self.budget, seed=self.seed),
            coverage=self.coverage,
            measure=self.measure,
            measured_runs=self.runs,
            seed=self.seed,
            samples=not self.no_sampling,
            uses_history=not (self.no_history or self.record_file),
            within_s=self.within_s,
            least_gain=self.least_gain,
        )
