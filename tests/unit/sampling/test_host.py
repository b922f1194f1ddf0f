"""The host: other programs by tables made up, turns on processors, sensors."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelcast.sampling import host
from kernelcast.sampling.host import (
    CoreTurns,
    count_others,
    read_processor_times,
    read_state_since,
)

OWN = os.getpid()
TICKS = os.sysconf("SC_CLK_TCK")
UPTIME_S = 1000.0


class _Table:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "uptime").write_text(f"{UPTIME_S} 1.0\n", encoding="ascii")
        self.add(OWN, "R")
        self.add(1, "S")
        self.add(2, "S")

    def add(self, process: int, *states: str, parent: int = 1, age_s: float = 500.0) -> None:
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
    monkeypatch.setattr(host, "_PROCESSES", tmp_path)
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


@pytest.fixture
def join(tmp_path: Path) -> Iterator[Callable[[float], CoreTurns]]:
    with ExitStack() as opened:

        def open_turns(most_s: float) -> CoreTurns:
            descriptor = os.open(tmp_path / "turns", os.O_RDWR | os.O_CREAT)
            opened.callback(os.close, descriptor)
            turns = CoreTurns(most_s)
            turns.use(descriptor)
            return turns

        yield open_turns


def _wait_s(turns: CoreTurns, *, measures: bool) -> float:
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


@pytest.mark.skipif(not Path("/proc/stat").is_file(), reason="there is no /proc/stat")
def test_sees_what_others_do_and_not_what_this_process_does() -> None:
    """Counts a busy neighbour, and leaves out work of our own."""
    before = read_processor_times()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        try:
            while (read_state_since(before).others_busy or 0.0) <= 0.1:
                time.sleep(0.05)
        finally:
            neighbour.kill()
    before = read_processor_times()
    end_s = time.process_time() + 0.3
    while time.process_time() < end_s:
        pass
    now = read_processor_times()
    assert now.own_s - before.own_s > 0.25


def test_what_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A system without Linux's files gives no numbers rather than wrong ones."""
    for name in ("_CLOCKS", "_THERMAL", "_HARDWARE_MONITORS", "_STATISTICS"):
        monkeypatch.setattr(host, name, tmp_path / "none")
    before = read_processor_times()
    state = read_state_since(before)
    assert (before.busy_s, state.others_busy, state.stolen) == (None, None, None)
    assert (state.governor, state.temperature_celsius, state.clock_hz) == (None, None, None)


def test_reads_sensors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The warmest sensor counts; clocks are in hertz."""
    for name, text in {
        "thermal_zone0/temp": "41000", "thermal_zone1/temp": "55500", "thermal_zone2/temp": "?",
        "scaling_cur_freq": "2400000", "scaling_governor": "performance\n",
    }.items():  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="ascii")
    monkeypatch.setattr(host, "_THERMAL", tmp_path)
    monkeypatch.setattr(host, "_CLOCKS", tmp_path)
    monkeypatch.setattr(host, "_HARDWARE_MONITORS", tmp_path / "none")
    state = read_state_since(read_processor_times())
    assert (state.temperature_celsius, state.clock_hz) == (55.5, 2.4e9)
    assert state.governor == "performance"


def test_the_clock_of_a_gpu_is_that_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads the clock of the GPU that has the name, and none instead of a processor's."""
    names = {0: "NVIDIA T4", 1: "NVIDIA H100 PCIe"}
    library = SimpleNamespace(
        NVMLError=LookupError, NVML_CLOCK_SM=1, nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(names), nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=names.get,
        nvmlDeviceGetClockInfo=lambda gpu, _: {0: 585, 1: 1755}[gpu],
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", library)
    host._find_gpu.cache_clear()
    for name, expected in (("NVIDIA H100 PCIe", 1.755e9), ("other", None)):
        assert read_state_since(read_processor_times(), gpu=name).clock_hz == expected
    host._find_gpu.cache_clear()
