"""Telling other programs from a runtime's own threads and children, by tables made up."""

import os
import shutil
from pathlib import Path

import pytest

from kernelcast.sampling import contention_meter
from kernelcast.sampling.contention_meter import count_others

OWN = os.getpid()
TICKS = os.sysconf("SC_CLK_TCK")
UPTIME_S = 1000.0


class _Table:
    """A table of processes in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "uptime").write_text(f"{UPTIME_S} 1.0\n", encoding="ascii")
        self.add(OWN, "R")
        self.add(1, "S")
        self.add(2, "S")

    def add(self, process: int, *states: str, parent: int = 1, age_s: float = 500.0) -> None:
        """Add a process with threads in states."""
        for number, state in enumerate(states):
            started = int((UPTIME_S - age_s) * TICKS)
            told = f"{process + number} (a name) {state} {parent} {'0 ' * 17}{started} 0\n"
            task = self.folder / f"{process}/task/{process + number}"
            task.mkdir(parents=True, exist_ok=True)
            (task / "stat").write_text(told, encoding="ascii")
            if not number:
                (self.folder / f"{process}/stat").write_text(told, encoding="ascii")

    def count(self, running: int) -> int:
        """Count others where the system says that so many threads run."""
        (self.folder / "loadavg").write_text(f"0.1 0.2 0.3 {running}/94 25501\n", encoding="ascii")
        return count_others()


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Table:
    """Give a machine on which nothing but this process runs."""
    monkeypatch.setattr(contention_meter, "_PROCESSES", tmp_path)
    return _Table(tmp_path)


def test_threads_of_other_programs_count(table: _Table) -> None:
    """Counts all that run, also where a program's first one rests; neither ours, nor those of the
    kernel that write a cache to the disk, nor those that have ended meanwhile."""
    table.add(OWN, "R", "R", "R")
    table.add(44, "R", parent=2)
    (table.folder / "300").mkdir()
    assert table.count(5) == 0
    table.add(100, "S", "R", "R")
    assert table.count(5) == 2


def test_a_runtimes_linker_does_not_count(table: _Table) -> None:
    """A child that has just begun is a runtime's; one that stays is a program like any other."""
    table.add(4_000_000, "R", parent=OWN, age_s=0.1)
    assert table.count(2) == 0
    table.add(4_000_000, "R", parent=OWN, age_s=30.0)
    assert table.count(2) == 1
    table.add(4_000_000, "R", parent=1, age_s=0.1)
    assert table.count(2) == 1


def test_a_container_shows_its_own_processes_alone(table: _Table) -> None:
    """There, whoever runs and is not ours may be another program."""
    shutil.rmtree(table.folder / "2")
    table.add(OWN, "R", "R")
    assert table.count(2) == 0
    assert table.count(5) == 3


def test_nothing_is_counted_where_nothing_can_be_read(table: _Table) -> None:
    """Gives none without a system's count, and no look at processes where it counts one alone."""
    assert count_others() == 0
    table.add(100, "R")
    assert table.count(1) == 0
    (table.folder / "loadavg").write_text("nonsense\n", encoding="ascii")
    assert count_others() == 0
