"""The progress bar of work that takes minutes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from kernelcast.reports.numbers import format_duration

_BAR_WIDTH = 16
_PACE_S = 3600.0
"""The pace is that of so long: single parts take minutes."""


class Tell(Protocol):
    """Is told how far long work has come."""

    def __call__(
        self, done: int, total: int, description: str, remaining_s: float | None = None
    ) -> None:
        """Tell parts that are done, all parts, and what is at work.

        Parameters
        ----------
        remaining_s : float or None
            About what the rest will take, in seconds; None: as its pace so far says.
        """
        ...


@contextmanager
def progress_bar(*, is_wanted: bool) -> Iterator[Tell]:
    """Show on standard error where work stands while the block runs, on a terminal only."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not (is_wanted and console.is_terminal):
        yield lambda *_, **__: None
        return
    columns = (
        BarColumn(bar_width=_BAR_WIDTH, table_column=Column(min_width=_BAR_WIDTH)),
        MofNCompleteColumn(table_column=Column(min_width=5)),
        TimeElapsedColumn(table_column=Column(min_width=7)),
        TextColumn("{task.fields[rest]}", markup=False, table_column=Column(min_width=14)),
        # A narrow terminal cuts the words, never the numbers.
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
    )
    with Bar(
        *columns, console=console, transient=True, expand=True, speed_estimate_period=_PACE_S
    ) as bar:
        task = bar.add_task("starting", total=None, rest="")

        def tell(done: int, total: int, description: str, remaining_s: float | None = None) -> None:
            bar.update(task, completed=done, total=total, description=description)
            rest_s = bar.tasks[0].time_remaining if remaining_s is None else remaining_s
            bar.update(task, rest="" if rest_s is None else f"about {format_duration(rest_s)} left")

        yield tell
