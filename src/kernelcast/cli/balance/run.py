"""Runs ``kernelcast balance``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelcast.balancing.api import balance_problem
from kernelcast.balancing.host_arguments import HostArguments
from kernelcast.balancing.places import place_by_text
from kernelcast.balancing.reports import balance_to_json
from kernelcast.balancing.settings import BalanceSettings
from kernelcast.cli.balance.text import draw_timeline, list_lines, make_table
from kernelcast.cli.terminal import ExitStatus, complain, progress, show, show_json, show_line
from kernelcast.records.balance import BalanceReport, MergeRule
from kernelcast.reports.drawing import check_plot
from kernelcast.reports.targets import make_folder, writing


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceRequest:
    """The command line of ``kernelcast balance``; fields are its options."""

    problem_file: Path
    device_ids: tuple[str, ...]
    cores: str | None
    settings: BalanceSettings
    parameters: Mapping[str, int | float]
    folder: Path | None
    as_json: bool
    plot_file: Path | None


def run_balance(request: BalanceRequest) -> ExitStatus:
    """Balance, show how it went, and give the exit status."""
    check_plot(request.plot_file)
    if request.folder is not None:
        make_folder(request.folder)
    places = place_by_text(request.device_ids, request.cores)
    with progress(is_wanted=not request.as_json) as report:
        found, arguments = balance_problem(
            request.problem_file,
            places,
            parameters=request.parameters,
            settings=request.settings,
            report=report,
        )
    if request.as_json:
        show_json(balance_to_json(found))
    else:
        _show(found)
    if request.folder is not None:
        _save(request.folder, found, arguments)
    if request.plot_file is not None:
        from kernelcast.cli.balance.plot import save_timeline

        save_timeline(request.plot_file, found)
    failed = [one for one in found.shares if one.failure]
    for one in failed:
        complain(one.failure)
    return ExitStatus.FAILED if failed else ExitStatus.ANSWERED


def _show(found: BalanceReport) -> None:
    show(make_table(found))
    for line in (*draw_timeline(found), "", *list_lines(found)):
        show_line(line)


def _save(folder: Path, found: BalanceReport, arguments: HostArguments) -> None:
    """Write what the kernel has written."""
    for (name, rule), array in zip(found.merges.items(), arguments.buffers.values(), strict=True):
        if rule is MergeRule.READ:
            continue
        path = folder / f"{name}.npy"
        with writing(path):
            np.save(path, array)
