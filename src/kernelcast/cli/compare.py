"""``kernelcast compare``."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import (
    ExitStatus,
    complain,
    present,
    progress_bar,
    show,
    show_json,
    show_line,
)
from kernelcast.cli.training_options import (
    DATA,
    JOBS,
    LEAST_WORK_GROUPS,
    ROWS_DEVICE,
    SHORTEST,
)
from kernelcast.training.settings import RowFilter, Split

if TYPE_CHECKING:  # takes longer to import than all other commands do
    from kernelcast.models.validation.comparison import MethodComparison

COMPARISON_FILE = "comparison.json"
PAGE_FILE = "comparison.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of ``kernelcast compare``."""

    methods: tuple[str, ...] = option.argument("A B [C...]")
    sources: tuple[str, ...] = DATA
    device_ids: tuple[str, ...] = ROWS_DEVICE
    split: str = option.given(
        "--split",
        "What is held out as a whole; a family is a kernel's application, or else the kernel.",
        type=click.Choice([one.value for one in Split if one is not Split.DEVICE]),
        default=Split.FAMILY.value,
    )
    folds: int = option.given(
        "--folds N", "Hold out in so many parts; 0 holds out one group after the other.",
        type=click.IntRange(min=0), default=10,
    )  # fmt: skip
    jobs: int | None = JOBS
    shortest_s: float = SHORTEST
    least_work_groups: int = LEAST_WORK_GROUPS
    resamples: int = option.given(
        "--resamples N",
        "How often kernels are drawn anew for the interval of the difference, in JSON.",
        type=click.IntRange(min=100), default=10_000,
    )  # fmt: skip
    folder: Path | None = option.given(
        "--out FOLDER", "Write comparison.json and a page, comparison.html, into FOLDER.",
        type=option.FOLDER,
    )  # fmt: skip
    as_json: bool = option.given(
        "--json", "Print JSON instead of tables: what comparison.json holds."
    )


@option.command(
    short="Compare methods on kernels they have not seen: which is nearer, and when.",
)
def compare(options: CompareOptions) -> ExitStatus:
    """Predict the same launches by several methods that have not seen them, and compare.

    Methods are names such as analytic, learned, linear and history; a wrong name lists all. Each
    is compared with each, by families of kernels: which is nearer by more than the noise of the
    measured times, by which factor, how sure that is, for which launches, and a decision tree of
    four leaves that says when which is nearer, with its error on families left out.

    Two runs that `kernelcast train --list` names are compared instead: what differs in rows,
    settings and libraries, and all scores side by side.

    Rows are those of the store in use, or of what --data names; where there is no store, those
    that come with the package.

    Exit status: 0 when all methods are judged on every device, 1 when not, 2 for bad input, 130
    after Ctrl-C.
    """
    from kernelcast.training.runs import is_run

    if len(options.methods) == 2 and all(map(is_run, options.methods)):
        return _compare_runs(*options.methods, as_json=options.as_json)
    from kernelcast.models.validation.comparison import Bootstrap
    from kernelcast.reports.comparison import present_comparison
    from kernelcast.reports.drawing import require_matplotlib
    from kernelcast.reports.targets import make_folder
    from kernelcast.training.comparing import ComparisonPlan, check_methods, compare_table
    from kernelcast.training.reading import choose_sources
    from kernelcast.training.table import load_training_table

    check_methods(options.methods)  # told before minutes of fits
    folder = options.folder
    if folder is not None:
        require_matplotlib("--out")
        make_folder(folder)
    plan = ComparisonPlan(
        split=Split(options.split),
        rows=option.pick(RowFilter, options),
        folds=options.folds or None,
        jobs=options.jobs or -1,
        bootstrap=Bootstrap(resamples=options.resamples),
    )
    table = load_training_table(
        choose_sources(options.sources, complain),
        devices=options.device_ids,
        tell=complain,
        of_one_sampler=True,
    )
    with progress_bar(is_wanted=not options.as_json) as tell:
        found = compare_table(
            table, options.methods, plan, lambda stage, done, total: tell(done, total, stage)
        )
    if options.as_json:
        show_json(found.to_plain())
    else:
        show(*present_comparison(found, is_brief=True))
    if folder is not None:
        _write_files(folder, found)
        if not options.as_json:
            show_line(f"written to {folder}")
    judged = found.scores[found.scores["launches"] > 0]
    by_device = judged.groupby("device")["method"].nunique()
    is_whole = all(by_device.get(one, 0) == len(options.methods) for one in {*table.devices})
    return ExitStatus.ANSWERED if is_whole else ExitStatus.FAILED


def _compare_runs(first: str, second: str, *, as_json: bool) -> ExitStatus:
    """Show what two trainings or validations differ by, and their scores."""
    from kernelcast.reports.presenter import Table
    from kernelcast.training.runs import compare_runs, find_run

    rows = compare_runs(find_run(first), find_run(second))
    content = [{"what": what, first: one, second: other} for what, one, other in rows]
    table = Table(columns=dict.fromkeys(("what", first, second), "text"), rows=rows)
    present(content, table, as_json=as_json)
    return ExitStatus.ANSWERED


def _write_files(folder: Path, found: "MethodComparison") -> None:
    from kernelcast.records.private_files import writing
    from kernelcast.reports.comparison import present_comparison
    from kernelcast.reports.presenter import save_page

    path = folder / COMPARISON_FILE
    with writing(path):
        path.write_text(json.dumps(found.to_plain(), indent=1), encoding="utf-8")
    title = f"{', '.join(found.methods)} compared"
    save_page(folder / PAGE_FILE, title, *present_comparison(found))
