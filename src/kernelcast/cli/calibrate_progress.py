"""The progress bar of ``kernelcast calibrate``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from kernelcast.predictor.calibration import Progress

_MINUTE_S = 60
_BAR_WIDTH = 16


@contextmanager
def calibration_progress(*, is_wanted: bool) -> Iterator[Callable[[Progress], None]]:
    """Show on standard error what is measured while the block runs, on a terminal only.

    Yields
    ------
    callable
        Takes where the calibration stands.
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
        task = bar.add_task("looking for devices", total=None, rest="")

        def tell(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.done,
                total=progress.total,
                description=describe(progress),
                rest=_expect(progress.remaining_s),
            )

        yield tell


def describe(progress: Progress) -> str:
    """Say what is at work.

    Examples
    --------
    >>> describe(Progress(device_id="a", done=0, total=2, title="barriers", stage="measuring"))
    'barriers: measuring (a)'
    """
    what = ": ".join(filter(None, [progress.title, progress.stage]))
    return f"{what} ({progress.device_id})"


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
