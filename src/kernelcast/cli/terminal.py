"""Where the commands write: tables and JSON to standard output, all else to standard error."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelcast.records.errors import InputError, KernelcastError

if TYPE_CHECKING:  # takes longer to import than all else that a command needs before it begins
    from rich.console import RenderableType

    from kernelcast.reports.charts import Figure
    from kernelcast.reports.presenter import Part

_LEAST_WIDTH = 80
_UNLIMITED_WIDTH = 10_000


def show(*parts: "Part | RenderableType") -> None:
    """Write parts to standard output, see `kernelcast.reports.presenter`.

    A pipe or file gets tables in full width.

    Parameters
    ----------
    parts : str, mapping, Table, Figure, Section or what rich prints
        What is shown; figures are not.
    """
    from rich.console import Console

    from kernelcast.reports import charts
    from kernelcast.reports.presenter import Section, Table, make_renderable

    # Device names hold brackets and the like: nothing in them is markup.
    console = Console(markup=False, highlight=False, emoji=False)
    unlimited = console.options.update(width=_UNLIMITED_WIDTH)
    width = console.width if console.is_terminal else _UNLIMITED_WIDTH
    for number, part in enumerate(parts):
        content: RenderableType | None
        if isinstance(part, str | Mapping | Table | Section | charts.Figure):
            content = make_renderable(part, width=width, is_first=not number)
        else:
            content = part
        if content is None:
            continue
        if not console.is_terminal:
            wanted_width = console.measure(content, options=unlimited).maximum
            console.width = max(_LEAST_WIDTH, wanted_width)
        console.print(content)


def present(
    content: object, *parts: "Part | RenderableType", as_json: bool, figure: "Figure | None" = None,
    plot_file: Path | None = None,
) -> None:  # fmt: skip
    """Present an answer: as JSON or as parts, and its figure in a file where one is named."""
    if as_json:
        show_json(content)
    else:
        show(*parts)
    if plot_file is not None and figure is not None:
        from kernelcast.reports.drawing import save_figure

        save_figure(plot_file, figure)


def show_line(text: str) -> None:
    """Write one line of text to standard output."""
    click.echo(text)


def show_json(content: object) -> None:
    """Write JSON to standard output; numbers that JSON lacks are refused."""
    click.echo(json.dumps(content, indent=2, allow_nan=False))


def complain(message: str) -> None:
    """Write an error to standard error."""
    click.echo(f"kernelcast: {message}", err=True)


@contextmanager
def progress(*, is_wanted: bool) -> Iterator[Callable[[str], None]]:
    """Show the stage at work on standard error while the block runs, on a terminal only."""
    if not (is_wanted and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    # "line" is the spinner that every terminal can show.
    with console.status(Text("starting"), spinner="line") as status:
        yield lambda stage: status.update(Text(stage))


class ExitStatus(IntEnum):
    """What the program's exit status says."""

    ANSWERED = 0
    """Every device answered."""
    FAILED = 1
    """A device failed, or there is none."""
    BAD_INPUT = 2
    """What was given cannot be used on any device."""
    INTERRUPTED = 130
    """Ctrl-C, as shells count it."""


def status_of(error: KernelcastError) -> ExitStatus:
    """Choose the exit status of a program that ends with this error."""
    return ExitStatus.BAD_INPUT if isinstance(error, InputError) else ExitStatus.FAILED


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """Choose the exit status of several outcomes together.

    Examples
    --------
    >>> worst([ExitStatus.ANSWERED, ExitStatus.FAILED])
    <ExitStatus.FAILED: 1>
    """
    return max(statuses, default=ExitStatus.ANSWERED)
