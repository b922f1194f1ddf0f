"""What ``kernelcast estimate`` was asked, checked before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from kernelcast.launches.settings import EstimateSettings, make_settings
from kernelcast.reports.drawing import check_plot
from kernelcast.reports.targets import check_target


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """The command line of ``kernelcast estimate``; fields are its options."""

    problem_files: tuple[Path, ...]
    device_ids: tuple[str, ...]
    measure: bool
    runs: int
    budget: float
    coverage: float
    seed: int
    parameters: Mapping[str, int | float]
    timeout_s: float
    within_s: float | None
    least_gain: float
    no_history: bool
    no_sampling: bool
    explain: bool
    as_json: bool
    record_file: Path | None
    replay_file: Path | None
    plot_file: Path | None

    def __post_init__(self) -> None:
        if not self.problem_files and self.replay_file is None:
            msg = "give at least one problem file, for example `kernelcast estimate P.yaml`"
            raise click.UsageError(msg)
        if self.no_sampling and (self.measure or self.record_file or self.replay_file):
            msg = "--no-sampling runs nothing: leave out --measure, --record and --replay"
            raise click.UsageError(msg)
        if self.record_file is not None:
            check_target(self.record_file)
        check_plot(self.plot_file)

    def settings(self) -> EstimateSettings:
        """Give what every estimate is made with."""
        return make_settings(
            budget=self.budget,
            coverage=self.coverage,
            measured_runs=self.runs if self.measure else None,
            seed=self.seed,
            samples=not self.no_sampling,
            uses_history=not (self.no_history or self.record_file),
            within_s=self.within_s,
            least_gain=self.least_gain,
        )
