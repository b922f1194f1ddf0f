"""Turns on processors that devices share."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kernelcast.sampling.cores import CoreTurns


@pytest.fixture
def join(tmp_path: Path) -> Iterator[Callable[[float], CoreTurns]]:
    """Give what opens the same file as another process would."""
    with ExitStack() as opened:

        def open_turns(most_s: float) -> CoreTurns:
            descriptor = os.open(tmp_path / "turns", os.O_RDWR | os.O_CREAT)
            opened.callback(os.close, descriptor)
            turns = CoreTurns(most_s)
            turns.use(descriptor)
            return turns

        yield open_turns


def _wait_s(turns: CoreTurns, *, measures: bool) -> float:
    """Take a turn; give the seconds until it came."""
    begin_s = time.monotonic()
    with turns.measuring() if measures else turns.preparing():
        return time.monotonic() - begin_s


def test_some_get_ready_together_and_each_measures_alone(
    join: Callable[[float], CoreTurns],
) -> None:
    """Who waits goes on after a while."""
    first, second = join(600.0), join(0.2)
    with first.preparing():
        assert _wait_s(second, measures=True) >= 0.2
        assert _wait_s(join(600.0), measures=False) < 600.0
    with first.measuring():
        assert _wait_s(second, measures=False) >= 0.2
        assert _wait_s(second, measures=True) >= 0.2
    assert _wait_s(join(600.0), measures=True) < 600.0


def test_measuring_ends_getting_ready(join: Callable[[float], CoreTurns]) -> None:
    """Who has got ready measures alone, and holds nothing between two moments or after an error."""
    first, second = join(600.0), join(600.0)
    with first.preparing():
        with first.measuring():
            assert _wait_s(join(0.05), measures=False) >= 0.05
        assert _wait_s(second, measures=True) < 600.0
    with suppress(ValueError), first.measuring():
        raise ValueError
    assert _wait_s(second, measures=True) < 600.0
