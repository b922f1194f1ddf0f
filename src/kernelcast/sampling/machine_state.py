"""How busy, fast and warm this machine is, as far as Linux tells without privileges."""

import importlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kernelcast.records.observation import MachineState

_CLOCKS = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_THERMAL = Path("/sys/class/thermal")
_HARDWARE_MONITORS = Path("/sys/class/hwmon")
_STATISTICS = Path("/proc/stat")
# Columns of /proc/stat's first line: user, nice, system, idle, iowait, irq, softirq, steal.
_BUSY, _STOLEN = (0, 1, 2, 5, 6), 7


class Processor(NamedTuple):
    """The host's processor; what cannot be read is empty."""

    name: str
    generation: str


class ProcessorTimes(NamedTuple):
    """Seconds that processors have spent so far, all together; None is what cannot be read."""

    at_s: float
    busy_s: float | None
    stolen_s: float | None
    """Waiting for the host of a virtual machine."""
    own_s: float
    """With this process and its children that have ended."""


def read_processor_times() -> ProcessorTimes:
    busy_s = stolen_s = None
    words = _read(_STATISTICS).split("\n", 1)[0].split()
    if words[:1] == ["cpu"] and len(words) > _STOLEN + 1:
        ticks = [int(word) for word in words[1:]]
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        busy_s = sum(ticks[column] for column in _BUSY) * tick_s
        stolen_s = ticks[_STOLEN] * tick_s
    own_s = sum(os.times()[:4])  # with children
    return ProcessorTimes(at_s=time.monotonic(), busy_s=busy_s, stolen_s=stolen_s, own_s=own_s)


def read_state_since(before: ProcessorTimes, gpu: str = "") -> MachineState:
    """Read the machine's state, with the clock of a GPU of that name, and what others have done."""
    now = read_processor_times()
    clocks_khz = _read_numbers([_CLOCKS / "scaling_cur_freq"])
    clock_hz = clocks_khz[0] * 1e3 if clocks_khz else None
    if gpu:
        clock_hz = None
        library, handle = _find_gpu(gpu)
        if handle is not None:
            with suppress(library.NVMLError):  # behind a launch the launch's
                clock_hz = library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM) * 1e6
    sensors = [*_THERMAL.glob("thermal_zone*/temp"), *_HARDWARE_MONITORS.glob("hwmon*/temp*_input")]
    temperatures = _read_numbers(sensors)
    state = MachineState(
        load=read_load(),
        governor=_read(_CLOCKS / "scaling_governor") or None,
        temperature_celsius=max(temperatures) / 1e3 if temperatures else None,
        clock_hz=clock_hz,
    )
    elapsed_s = now.at_s - before.at_s
    if before.busy_s is None or now.busy_s is None or elapsed_s <= 0:
        return state
    others_s = (now.busy_s - before.busy_s) - (now.own_s - before.own_s)
    stolen_s = (now.stolen_s or 0.0) - (before.stolen_s or 0.0)
    return replace(
        state,
        others_busy=max(others_s, 0.0) / elapsed_s,
        stolen=max(stolen_s, 0.0) / elapsed_s,
    )


@cache
def _find_gpu(name: str) -> tuple[Any, Any]:
    """Find the library that manages NVIDIA's GPUs, and the first GPU of a name."""
    try:
        library: Any = importlib.import_module("pynvml")
    except ImportError:
        return None, None
    try:
        library.nvmlInit()
        gpus = map(library.nvmlDeviceGetHandleByIndex, range(library.nvmlDeviceGetCount()))
        return library, next((one for one in gpus if library.nvmlDeviceGetName(one) == name), None)
    except library.NVMLError:  # no driver, or none that manages
        return None, None


@cache
def read_processor() -> Processor:
    first = _read(Path("/proc/cpuinfo")).split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    said = {key.strip(): value.strip() for key, _, value in pairs}
    # What tells generations apart on x86 and on Arm, besides the names.
    keys = ("cpu family", "model", "CPU implementer", "CPU part")
    generation = " ".join(filter(None, (said.get(key, "") for key in keys)))
    return Processor(name=said.get("model name", ""), generation=generation)


def read_load() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def _read_numbers(paths: Iterable[Path]) -> list[float]:
    found = []
    for path in paths:
        with suppress(ValueError):
            found.append(float(_read(path)))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
