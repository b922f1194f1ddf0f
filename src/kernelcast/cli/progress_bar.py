"""The progress bar of work that takes minutes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

_MINUTE_S = 60
_BAR_WIDTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where long work stands.

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
def progress_bar(*, is_wanted: bool) -> Iterator[Callable[[Standing], None]]:
    """Show on standard error where work stands while the block runs, on a terminal only.

    Yields
    ------
    callable
        Takes where it stands.
    """
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

        def tell(standing: Standing) -> None:
            bar.update(
                task,
                completed=standing.done,
                total=standing.total,
                description=standing.description,
                rest=_expect(standing.remaining_s),
            )

        yield tell


def _expect(remaining_s: float | None) -> str:
    """Say how long the rest will take.

    Examples
    --------
    >>> _expect(None), _expect(12.4), _expect(125)
    ('', 'about 12 s left', 'about 2 min left')
    """
    if remaining_s is None:
        return ""
    if remaining_s < 1.5 * _MINUTE_S:
        return f"about {remaining_s:.0f} s left"
    return f"about {remaining_s / _MINUTE_S:.0f} min left"
