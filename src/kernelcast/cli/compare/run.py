"""Runs ``kernelcast compare``."""

import json
from dataclasses import dataclass
from pathlib import Path

from kernelcast.cli.compare.page import save_comparison_page
from kernelcast.cli.compare.text import list_lines, make_class_table, make_error_table
from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.terminal import ExitStatus, complain, show, show_json, show_line
from kernelcast.models.catalogue import make_model
from kernelcast.models.validation.bootstrap import Bootstrap
from kernelcast.models.validation.comparison import Comparison, comparison_to_json
from kernelcast.reports.drawing import require_matplotlib
from kernelcast.reports.targets import make_folder, writing
from kernelcast.training.comparing import ComparisonPlan, compare_models
from kernelcast.training.settings import RowFilter, Split
from kernelcast.training.table import load_training_table

COMPARISON_FILE = "comparison.json"
PAGE_FILE = "comparison.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """The command line of ``kernelcast compare``; fields are its options."""

    first: str
    second: str
    sources: tuple[str, ...]
    device_ids: tuple[str, ...]
    split: str
    jobs: int | None
    shortest_s: float
    least_work_groups: int
    resamples: int
    folder: Path | None
    as_json: bool

    def check(self) -> None:
        """Find out what is wrong before minutes of fits, and make the folder."""
        for name in (self.first, self.second):
            make_model(name)
        if self.folder is None:
            return
        require_matplotlib("--out")
        make_folder(self.folder)

    def plan(self) -> ComparisonPlan:
        """Give how to compare."""
        return ComparisonPlan(
            split=Split(self.split),
            rows=RowFilter(shortest_s=self.shortest_s, least_work_groups=self.least_work_groups),
            jobs=self.jobs or -1,
            bootstrap=Bootstrap(resamples=self.resamples),
        )


def run_comparison(request: CompareRequest) -> ExitStatus:
    """Compare, show what was found, and give the exit status."""
    request.check()
    table = load_training_table(request.sources, devices=request.device_ids, tell=complain)
    with progress_bar(is_wanted=not request.as_json) as tell:
        comparison = compare_models(
            table, request.first, request.second, request.plan(),
            lambda stage, done, total: tell(done, total, stage),
        )  # fmt: skip
    if request.as_json:
        show_json(json.loads(comparison_to_json(comparison)))
    else:
        _show(comparison)
    for what, why in comparison.refused.items():
        complain(f"{what}: {why}")
    if request.folder is not None:
        _write(request.folder, comparison)
        if not request.as_json:
            show_line(f"written to {request.folder}")
    judged = {one.device for one in comparison.devices if one.rows}
    is_whole = judged == {*map(str, table.devices)}
    return ExitStatus.ANSWERED if is_whole else ExitStatus.FAILED


def _write(folder: Path, comparison: Comparison) -> None:
    path = folder / COMPARISON_FILE
    with writing(path):
        path.write_text(comparison_to_json(comparison), encoding="utf-8")
    save_comparison_page(folder / PAGE_FILE, comparison)


def _show(comparison: Comparison) -> None:
    for place, device in enumerate(comparison.devices):
        if place:
            show_line("")
        show_line(f"{device.device}: {device.rows} rows of {len(device.kernels)} kernels")
        if device.first_errors is None:
            show_line("there is no row that both models answered")
            continue
        show(make_error_table(comparison, device))
        before, after = list_lines(comparison, device)
        for line in before:
            show_line(line)
        show(make_class_table(comparison, device))
        for line in after:
            show_line(line)
