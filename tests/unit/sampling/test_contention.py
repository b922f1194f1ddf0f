"""Finding out what other programs leave to a device, without one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelcast.sampling import contention, waiting
from kernelcast.sampling.contention import measure_contention
from kernelcast.sampling.waiting import (
    Waiting,
    add_up_workers,
    leave_waiting_out,
    read_waiting,
)


class _Probe:
    """Threads that wait as long as they are told."""

    def __init__(self, slowdown: float) -> None:
        self.slowdown = slowdown
        self.runs = 0

    def run(self, groups: tuple[int, ...], *, steps: int) -> None:
        """Count a launch."""
        assert groups
        assert steps > 0
        self.runs += 1

    def read(self) -> dict[str, Waiting]:
        """Give what two threads have worked so far, and what one that looks on has waited."""
        worked_s = 0.025 * self.runs
        one = Waiting(worked_s, (self.slowdown - 1) * worked_s)
        return {"1": one, "2": one, "3": Waiting(0.0001 * self.runs, 9.0 * self.runs)}


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, int], _Probe]:
    """Give a probe on a machine with so many other programs."""

    def make(slowdown: float, others: int) -> _Probe:
        probe = _Probe(slowdown)
        monkeypatch.setattr(contention, "count_others", lambda: others)
        monkeypatch.setattr(contention, "read_waiting", probe.read)
        return probe

    return make


def test_nothing_runs_where_nobody_else_does(watch: Callable[[float, int], _Probe]) -> None:
    """On an idle machine no launch is spent."""
    probe = watch(1.0, 0)
    assert measure_contention(probe, 1e6) is None  # type: ignore[arg-type]  # a fake
    assert probe.runs == 0


def test_one_launch_shows_that_others_are_in_nobodys_way(
    watch: Callable[[float, int], _Probe],
) -> None:
    """Where there are processors enough, one launch says so."""
    probe = watch(1.01, 3)
    found = measure_contention(probe, 1e6)  # type: ignore[arg-type]  # a fake
    assert found is not None
    assert not found.is_noticeable
    assert probe.runs == 1


def test_says_how_long_the_devices_threads_wait(watch: Callable[[float, int], _Probe]) -> None:
    """The slowdown is that of the threads that work; those that look on do not count."""
    probe = watch(3.0, 4)
    found = measure_contention(probe, 1e6)  # type: ignore[arg-type]  # a fake
    assert found is not None
    assert found.slowdown == pytest.approx(3.0)
    assert found.others == pytest.approx(4.0)
    assert probe.runs > 1


def test_a_system_that_does_not_tell(
    watch: Callable[[float, int], _Probe], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gives none."""
    probe = watch(3.0, 4)
    monkeypatch.setattr(contention, "read_waiting", dict)
    assert measure_contention(probe, 1e6) is None  # type: ignore[arg-type]  # a fake


def test_reads_what_the_system_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads nanoseconds of each thread."""
    (tmp_path / "7").mkdir()
    (tmp_path / "8").mkdir()
    (tmp_path / "7" / "schedstat").write_text("1500000000 500000000 12\n", encoding="ascii")
    monkeypatch.setattr(waiting, "_THREADS", tmp_path)
    assert read_waiting() == {"7": Waiting(1.5, 0.5)}
    monkeypatch.setattr(waiting, "_THREADS", tmp_path / "none")
    assert read_waiting() == {}


def test_what_threads_waited_is_left_out_of_a_launch() -> None:
    """Half of the time waiting halves a launch; without readings it stays as it is."""
    before, after = {"1": Waiting(0.0, 0.0)}, {"1": Waiting(1.0, 1.0)}
    assert leave_waiting_out(2.0, before, after) == pytest.approx(1.0)
    assert leave_waiting_out(2.0, {}, {}) == pytest.approx(2.0)
    assert add_up_workers(before, after) == Waiting(1.0, 1.0)
