"""``kernelcast compare``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, show, show_json, show_line
from kernelcast.cli.train.options import (
    data_option,
    jobs_option,
    judged_rows_options,
    rows_device_option,
)
from kernelcast.training.settings import RowFilter, Split

if TYPE_CHECKING:  # takes longer to import than all other commands do
    from kernelcast.models.validation.comparison import Comparison
    from kernelcast.models.validation.methods import MethodComparison

COMPARISON_FILE = "comparison.json"
PAGE_FILE = "comparison.html"
_RESAMPLES = 10_000
_FEWEST_RESAMPLES = 100
_FOLDS = 10


@click.command(
    context_settings={"show_default": True},
    short_help="Compare methods on kernels they have not seen: which is nearer, and when.",
)
@click.argument("methods", metavar="A B [C...]", nargs=-1, required=True)
@data_option
@rows_device_option
@click.option(
    "--split",
    type=click.Choice([one.value for one in Split if one is not Split.DEVICE]),
    default=Split.FAMILY.value,
    help="What is held out as a whole; a family is a kernel's application, or else the kernel.",
)
@option.count(
    "--folds",
    default=_FOLDS,
    least=0,
    says="Hold out in so many parts; 0 holds out one group after the other.",
)
@jobs_option
@judged_rows_options
@option.count(
    "--resamples",
    default=_RESAMPLES,
    least=_FEWEST_RESAMPLES,
    says="How often kernels are drawn anew for the interval of the difference, in JSON.",
)
@option.folder("Write comparison.json and a page, comparison.html, into FOLDER.")
@option.json("Print JSON instead of tables: what comparison.json holds.")
@option.debug
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    methods: tuple[str, ...],
    sources: tuple[str, ...],
    device_ids: tuple[str, ...],
    *,
    folder: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - see the options
) -> None:
    """Predict the same launches by several methods that have not seen them, and compare.

    Methods are names such as analytic, learned, linear and history; a wrong name lists all. Each
    is compared with each, by families of kernels: which is nearer by more than the noise of the
    measured times, by which factor, how sure that is, for which launches, and a decision tree of
    four leaves that says when which is nearer, with its error on families left out.

    Rows are those of the store in use, or of what --data names; where there is no store, those
    that come with the package.

    Exit status: 0 when all methods are judged on every device, 1 when not, 2 for bad input, 130
    after Ctrl-C.
    """
    from kernelcast.cli.progress_bar import progress_bar
    from kernelcast.models.validation.bootstrap import Bootstrap
    from kernelcast.reports.comparison import present_comparison
    from kernelcast.reports.drawing import require_matplotlib
    from kernelcast.reports.targets import make_folder
    from kernelcast.training.comparing import ComparisonPlan, check_methods, compare_table
    from kernelcast.training.reading import choose_sources
    from kernelcast.training.table import load_training_table

    check_methods(methods)  # told before minutes of fits
    if folder is not None:
        require_matplotlib("--out")
        make_folder(folder)
    plan = ComparisonPlan(
        split=Split(options["split"]),
        rows=RowFilter(
            shortest_s=options["shortest_s"], least_work_groups=options["least_work_groups"]
        ),
        folds=options["folds"] or None,
        jobs=options["jobs"] or -1,
        bootstrap=Bootstrap(resamples=options["resamples"]),
    )
    table = load_training_table(
        choose_sources(sources, complain), devices=device_ids, tell=complain, of_one_sampler=True
    )
    with progress_bar(is_wanted=not as_json) as tell:
        found, pair = compare_table(
            table, methods, plan, lambda stage, done, total: tell(done, total, stage)
        )
    if as_json:
        show_json(_write_plain(found, pair))
    else:
        show(*present_comparison(found, pair, is_brief=True))
    if folder is not None:
        _write_files(folder, found, pair)
        if not as_json:
            show_line(f"written to {folder}")
    judged = found.scores[found.scores["launches"] > 0]
    by_device = judged.groupby("device")["method"].nunique()
    is_whole = all(by_device.get(one, 0) == len(methods) for one in {*table.devices})
    ctx.exit(ExitStatus.ANSWERED if is_whole else ExitStatus.FAILED)


def _write_plain(found: "MethodComparison", pair: "Comparison") -> dict[str, Any]:
    """Give the pair that is named first, and beside it what is known of all methods."""
    from kernelcast.models.validation.comparison import comparison_to_json

    return {**json.loads(comparison_to_json(pair)), **found.to_plain()}


def _write_files(folder: Path, found: "MethodComparison", pair: "Comparison") -> None:
    from kernelcast.reports.comparison import present_comparison
    from kernelcast.reports.presenter import save_page
    from kernelcast.reports.targets import writing

    path = folder / COMPARISON_FILE
    with writing(path):
        path.write_text(json.dumps(_write_plain(found, pair), indent=1), encoding="utf-8")
    title = f"{', '.join(found.methods)} compared"
    save_page(folder / PAGE_FILE, title, *present_comparison(found, pair))
