"""Runs ``kernelcast simulate``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from kernelcast.cli.options import take_fields
from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.simulate.plot import save_simulation_plot
from kernelcast.cli.terminal import ExitStatus, make_table, show, show_json
from kernelcast.reports.drawing import check_plot
from kernelcast.reports.numbers import format_share
from kernelcast.scheduling.cluster.errors import ErrorModel, lognormal_errors
from kernelcast.scheduling.cluster.graphs import Shape
from kernelcast.scheduling.cluster.study import Outcome, StudySettings, run_study


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """The command line of ``kernelcast simulate``; fields are its options."""

    study: StudySettings
    validation_file: Path | None
    model_name: str | None
    plot_file: Path | None
    as_json: bool

    def __post_init__(self) -> None:
        if self.model_name is not None and self.validation_file is None:
            msg = "--model chooses among the models of --validation; give both"
            raise click.UsageError(msg)
        check_plot(self.plot_file)

    def settings(self) -> StudySettings:
        """Give what is simulated."""
        return replace(self.study, errors=(*self.study.errors, *self._validated()))

    def _validated(self) -> list[ErrorModel]:
        if self.validation_file is None:
            return []
        # Reports of validations live with the models, whose libraries take long to import.
        from kernelcast.scheduling.cluster.validation import read_validation

        return read_validation(self.validation_file, model=self.model_name)


def read_request(options: dict[str, Any]) -> SimulateRequest:
    """Read the command line."""
    options["shapes"] = tuple(map(Shape, dict.fromkeys(options["shapes"]))) or tuple(Shape)
    options["errors"] = tuple(map(lognormal_errors, options["errors"]))
    return SimulateRequest(study=take_fields(StudySettings, options), **options)


def run_simulation(request: SimulateRequest) -> ExitStatus:
    """Simulate, show the outcomes, draw them."""
    settings = request.settings()
    with progress_bar(is_wanted=not request.as_json) as tell:
        outcomes = run_study(
            settings, report=lambda done, what: tell(done, settings.simulations, what)
        )
    if request.as_json:
        show_json([_describe(one) for one in outcomes])
    else:
        show(_make_table(outcomes))
    if request.plot_file is not None:
        save_simulation_plot(request.plot_file, settings, outcomes)
    return ExitStatus.ANSWERED


def _make_table(outcomes: Sequence[Outcome]) -> Table:
    table = make_table(
        "shape", "the scheduler knows", "mean error", "makespan", "least", "most",
        caption="makespan: over that with perfect knowledge, median of all repeats",
    )  # fmt: skip
    for one in outcomes:
        table.add_row(
            one.shape.value,
            one.label,
            "" if one.mean_error is None else format_share(one.mean_error),
            f"{one.ratio:.3f}",
            f"{min(one.ratios):.3f}",
            f"{max(one.ratios):.3f}",
        )
    return table


def _describe(one: Outcome) -> dict[str, object]:
    return {
        "shape": one.shape.value,
        "knowledge": one.knowledge,
        "label": one.label,
        "mean_error": one.mean_error,
        "from_validation": one.is_measured,
        "history_runs": one.runs,
        "makespan_ratio": one.ratio,
        "makespan_ratios": list(one.ratios),
        "lower_bound_ratios": list(one.bound_ratios),
    }
