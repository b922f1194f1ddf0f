"""The progress of fits, with the time that is left."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernelcast.cli.progress_bar import ProgressUpdate, progress_bar


@contextmanager
def fit_progress(what: str, *, is_wanted: bool) -> Iterator[Callable[[int, int], None]]:
    """Show on standard error how many fits are done while the block runs, on a terminal only."""
    with progress_bar(is_wanted=is_wanted) as tell:
        begin_s = time.monotonic()

        def report(done: int, total: int) -> None:
            passed_s = time.monotonic() - begin_s
            tell(
                ProgressUpdate(
                    done=done,
                    total=total,
                    description=what,
                    remaining_s=expect_rest(done, total, passed_s),
                )
            )

        yield report


def expect_rest(done: int, total: int, passed_s: float) -> float | None:
    """Give the time that the rest takes if it goes on like this, in seconds; None at first.

    Examples
    --------
    >>> expect_rest(0, 10, 1.0), expect_rest(5, 10, 20.0)
    (None, 20.0)
    """
    return passed_s / done * (total - done) if done else None
