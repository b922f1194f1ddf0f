import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelcast.sampling import machine_state
from kernelcast.sampling.machine_state import (
    read_processor_times,
    read_state_since,
)

BUSY = "while True: pass"


@pytest.mark.skipif(not Path("/proc/stat").is_file(), reason="there is no /proc/stat")
def test_sees_what_others_do_and_not_what_this_process_does() -> None:
    """Counts a busy neighbour, and leaves out work of our own."""
    before = read_processor_times()
    with subprocess.Popen([sys.executable, "-c", BUSY]) as neighbour:
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
        monkeypatch.setattr(machine_state, name, tmp_path / "none")
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
    monkeypatch.setattr(machine_state, "_THERMAL", tmp_path)
    monkeypatch.setattr(machine_state, "_CLOCKS", tmp_path)
    monkeypatch.setattr(machine_state, "_HARDWARE_MONITORS", tmp_path / "none")
    state = read_state_since(read_processor_times())
    assert (state.temperature_celsius, state.clock_hz) == (55.5, 2.4e9)
    assert state.governor == "performance"


@pytest.mark.parametrize(("name", "expected"), [("NVIDIA H100 PCIe", 1.755e9), ("other", None)])
def test_the_clock_of_a_gpu_is_that_of_the_gpu(
    monkeypatch: pytest.MonkeyPatch, name: str, expected: float | None
) -> None:
    """Reads the clock of the GPU that has the name, and none instead of a processor's."""
    names = {0: "NVIDIA T4", 1: "NVIDIA H100 PCIe"}
    library = SimpleNamespace(
        NVMLError=LookupError, NVML_CLOCK_SM=1, nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(names), nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=names.get,
        nvmlDeviceGetClockInfo=lambda gpu, _: {0: 585, 1: 1755}[gpu],
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", library)
    machine_state._find_gpu.cache_clear()
    assert read_state_since(read_processor_times(), gpu=name).clock_hz == expected
    machine_state._find_gpu.cache_clear()
