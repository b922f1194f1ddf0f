"""The progress bar of work that takes minutes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from kernelcast.reports.numbers import format_duration

_BAR_WIDTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressUpdate:
    """How far long work has come.

    Parameters
    ----------
    done, total : int
        Parts of it.
    description : str
        What is at work.
    remaining_s : float or None
        About what the rest will take, in seconds; None as long as nobody knows.
    """

    done: int
    total: int
    description: str
    remaining_s: float | None = None


@contextmanager
def progress_bar(*, is_wanted: bool) -> Iterator[Callable[[ProgressUpdate], None]]:
    """Show on standard error where work stands while the block runs, on a terminal only."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not (is_wanted and console.is_terminal):
        yield lambda _: None
        return
    columns = (
        BarColumn(bar_width=_BAR_WIDTH, table_column=Column(min_width=_BAR_WIDTH)),
        MofNCompleteColumn(table_column=Column(min_width=5)),
        TimeElapsedColumn(table_column=Column(min_width=7)),
        TextColumn("{task.fields[rest]}", markup=False, table_column=Column(min_width=14)),
        # A narrow terminal cuts the words, never the numbers.
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
    )
    with Bar(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task("starting", total=None, rest="")

        def tell(update: ProgressUpdate) -> None:
            bar.update(
                task,
                completed=update.done,
                total=update.total,
                description=update.description,
                rest=""
                if update.remaining_s is None
                else f"about {format_duration(update.remaining_s)} left",
            )

        yield tell
