"""How commands end and where they write: answers to standard output, the rest to standard error."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import click

from kernelcast.records.errors import InputError, KernelcastError

if TYPE_CHECKING:  # takes longer to import than all else that a command needs before it begins
    from kernelcast.records.problem import Problem
    from kernelcast.reports.charts import Figure
    from kernelcast.reports.presenter import Part

DEBUG = "kernelcast.debug"
JSON = "kernelcast.json"
PLOT_FILE = "kernelcast.plot_file"
"""Keys of what a command was given in the context of its call."""
_UNLIMITED_WIDTH = 10_000
T = TypeVar("T")


def _read_option(key: str) -> Any:  # noqa: ANN401 - what the option has
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(key)


def wants_json() -> bool:
    return bool(_read_option(JSON))


def show(*parts: "Part") -> None:
    """Write parts to standard output, see `kernelcast.reports.presenter`; with ``--json`` none."""
    if wants_json():
        return
    from rich.console import Console

    from kernelcast.reports.presenter import make_renderable

    # Device names hold brackets and the like: nothing in them is markup.
    console = Console(markup=False, highlight=False, emoji=False)
    unlimited = console.options.update(width=_UNLIMITED_WIDTH)
    width = console.width if console.is_terminal else _UNLIMITED_WIDTH
    for number, part in enumerate(parts):
        content = make_renderable(part, width=width, is_first=not number)
        if content is None:
            continue
        if not console.is_terminal:
            wanted_width = console.measure(content, options=unlimited).maximum
            console.width = max(80, wanted_width)
        console.print(content)


def present(
    content: object, *parts: "Part", figure: "Figure | None" = None,
    notes: Iterable[str] = (),
) -> None:  # fmt: skip
    """Present an answer: with ``--json`` its content, else parts; a figure where ``--plot`` says.

    Numbers that JSON lacks are refused.
    """
    if wants_json():
        click.echo(json.dumps(content, indent=2, allow_nan=False))
    show(*parts, *(f"note: {note}" for note in dict.fromkeys(notes)))
    plot_file: Path | None = _read_option(PLOT_FILE)
    if figure is not None and plot_file is not None:
        from kernelcast.reports.drawing import save_figure

        save_figure(plot_file, figure)


def complain(message: str) -> None:
    click.echo(f"kernelcast: {message}", err=True)


class Tell(Protocol):
    """Is told how far long work has come; of work without parts `total` is 0."""

    def __call__(
        self, done: int, total: int, description: str, remaining_s: float | None = None
    ) -> None: ...


@contextmanager
def progress_bar() -> Iterator[Tell]:
    """Show on standard error where work stands, on a terminal and without ``--json`` only."""
    if wants_json() or not sys.stderr.isatty():
        yield lambda *_, **__: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    from kernelcast.reports.numbers import format_duration

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (
        BarColumn(bar_width=16, table_column=Column(min_width=16)),
        TextColumn("{task.fields[parts]}", markup=False, table_column=Column(min_width=5)),
        TimeElapsedColumn(table_column=Column(min_width=7)),
        TextColumn("{task.fields[rest]}", markup=False, table_column=Column(min_width=14)),
        # A narrow terminal cuts the words, never the numbers.
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
    )
    # The pace is that of an hour: single parts take minutes.
    with Bar(
        *columns, console=console, transient=True, expand=True, speed_estimate_period=3600.0
    ) as bar:
        task = bar.add_task("starting", total=None, parts="", rest="")

        def tell(done: int, total: int, description: str, remaining_s: float | None = None) -> None:
            parts = f"{done}/{total}" if total else ""
            bar.update(
                task, completed=done, total=total or None, description=description, parts=parts
            )
            rest_s = bar.tasks[0].time_remaining if remaining_s is None else remaining_s
            bar.update(task, rest="" if rest_s is None else f"about {format_duration(rest_s)} left")

        yield tell


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Show the stage at work where `progress_bar` shows parts."""
    with progress_bar() as tell:
        yield lambda stage: tell(0, 0, stage)


class ExitStatus(IntEnum):
    ANSWERED = 0
    FAILED = 1
    """A device failed, or there is none."""
    BAD_INPUT = 2
    INTERRUPTED = 130
    """Ctrl-C, as shells count it."""


def status_of(error: KernelcastError) -> ExitStatus:
    return ExitStatus.BAD_INPUT if isinstance(error, InputError) else ExitStatus.FAILED


@dataclass(slots=True)
class Collected(Generic[T]):
    """What has been answered so far, whatever ends the asking."""

    answers: list[T] = field(default_factory=list)
    """In the order of problems and devices."""
    failures: list[tuple[str, KernelcastError]] = field(default_factory=list)
    """Of single devices, with the names of problems."""
    refusals: list[tuple[str, KernelcastError]] = field(default_factory=list)
    """Of problems that no device takes, and what kept all devices from answering."""
    is_interrupted: bool = False
    when_interrupted: str = "what was done by then is shown"

    def read_problems(
        self, paths: Sequence[Path], parameters: Mapping[str, int | float]
    ) -> "list[Problem]":
        """Read problem files; of several, those that cannot be read are refused."""
        from kernelcast.launches.problem_file import read_problem

        problems = []
        for path in paths:
            try:
                problems.append(read_problem(path, parameters=parameters))
            except KernelcastError as error:
                if len(paths) == 1:
                    raise
                self.refusals.append(("", error))
        return problems

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Have Ctrl-C end the block, and nothing else."""
        try:
            yield
        except KeyboardInterrupt:
            self.is_interrupted = True

    def conclude(self) -> ExitStatus:
        """Write every error to standard error; give the exit status."""
        for name, error in (*self.failures, *self.refusals):
            complain(f"{name}: {error}" if name else str(error))
        if self.is_interrupted:
            complain(f"interrupted; {self.when_interrupted}")
            return ExitStatus.INTERRUPTED
        refused = (status_of(error) for _, error in self.refusals)
        return max(refused, default=ExitStatus.FAILED if self.failures else ExitStatus.ANSWERED)
