"""``kernelcast compare``."""

import json
from pathlib import Path

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import ExitStatus, complain, present, progress_bar, show
from kernelcast.cli.training_options import DATA, JOBS, ROW_FILTER
from kernelcast.training.settings import Split, ValidationSettings


@option.command(
    short="Compare methods on kernels they have not seen: which is nearer, and when.",
    json="Print JSON instead of tables: what comparison.json holds.",
)
def compare(
    methods: tuple[str, ...] = option.argument("A B [C...]"),
    sources: tuple[str, ...] = DATA,
    device_ids: tuple[str, ...] = option.device,
    settings: ValidationSettings = option.settings(
        split=option.given(
            "--split",
            "What is held out as a whole; a family is a kernel's application, or else the kernel.",
            type=click.Choice([one.value for one in Split if one is not Split.DEVICE]),
            default=Split.FAMILY,
        ),
        folds=option.given(
            "--folds N",
            "Hold out in so many parts; 0 holds out one group after the other.",
            type=click.IntRange(min=0), default=10, callback=lambda _, __, folds: folds or None,
        ),
        jobs=JOBS,
        rows=ROW_FILTER,
    ),
    resamples: int = option.given(
        "--resamples N",
        "Bootstrap samples for the interval of the difference, in JSON.",
        type=click.IntRange(min=100), default=10_000,
    ),
    folder: Path | None = option.given(
        "--out FOLDER", "Write comparison.json and a page, comparison.html, into FOLDER.",
        type=option.FOLDER,
    ),
) -> ExitStatus:  # fmt: skip
    """Predict the same launches by several methods that have not seen them, and compare.

    Methods are analytic, learned, linear, history and others; a wrong name lists all. For each
    pair, by families of kernels: which is nearer by more than the noise of the measured times, by
    which factor, how sure that is, and for which launches.

    Of two runs that `kernelcast train --list` names: what differs in rows, settings and
    libraries, and all scores side by side.

    Where there is no store, rows are those that come with the package.

    Exit status: 0 when all methods are judged on every device, 1 when not, 2 for bad input, 130
    after Ctrl-C.
    """
    from kernelcast.reports.presenter import Table, save_page
    from kernelcast.training.runs import compare_runs, find_run, is_run

    if len(methods) == 2 and all(map(is_run, methods)):
        first, second = methods
        rows = compare_runs(find_run(first), find_run(second))
        content = [{"what": what, first: one, second: other} for what, one, other in rows]
        present(content, Table(columns=dict.fromkeys(("what", *methods), "text"), rows=rows))
        return ExitStatus.ANSWERED
    from kernelcast.records.private_files import make_folder, writing
    from kernelcast.reports.comparison import present_comparison
    from kernelcast.reports.drawing import require_matplotlib
    from kernelcast.training.comparing import check_methods, compare_table
    from kernelcast.training.table import choose_sources, load_training_table

    check_methods(methods)  # told before minutes of fits
    if folder is not None:
        require_matplotlib("--out")
        make_folder(folder)
    table = load_training_table(
        choose_sources(sources, complain),
        devices=device_ids,
        tell=complain,
        of_one_sampler=True,
    )
    with progress_bar() as tell:
        found = compare_table(
            table,
            methods,
            settings,
            resamples=resamples,
            report=lambda stage, done, total: tell(done, total, stage),
        )
    present(found.to_plain(), *present_comparison(found, is_brief=True))
    if folder is not None:
        path = folder / "comparison.json"
        with writing(path):
            path.write_text(json.dumps(found.to_plain(), indent=1), encoding="utf-8")
        title = f"{', '.join(found.methods)} compared"
        save_page(folder / "comparison.html", title, *present_comparison(found))
        show(f"written to {folder}")
    judged = found.scores[found.scores["launches"] > 0]
    by_device = judged.groupby("device")["method"].nunique()
    is_whole = all(by_device.get(one, 0) == len(methods) for one in {*table.devices})
    return ExitStatus.ANSWERED if is_whole else ExitStatus.FAILED
