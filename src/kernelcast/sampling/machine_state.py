"""How busy, fast and warm this machine is, as far as Linux tells without privileges."""

import os
from pathlib import Path

from kernelcast.records.observed_times import MachineState

_CLOCKS = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_THERMAL = Path("/sys/class/thermal")
_HARDWARE_MONITORS = Path("/sys/class/hwmon")
_THOUSANDTHS = 1e-3


def read_machine_state() -> MachineState:
    """Read load, governor, clock and temperature; None is what cannot be read here."""
    clock_khz = _read_number(_CLOCKS / "scaling_cur_freq")
    return MachineState(
        load=_read_load(),
        governor=_read(_CLOCKS / "scaling_governor") or None,
        temperature_celsius=_read_warmest(),
        clock_hz=None if clock_khz is None else clock_khz * 1e3,
    )


def _read_load() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def _read_warmest() -> float | None:
    sensors = [*_THERMAL.glob("thermal_zone*/temp"), *_HARDWARE_MONITORS.glob("hwmon*/temp*_input")]
    found = [value for value in map(_read_number, sensors) if value is not None]
    return max(found) * _THOUSANDTHS if found else None


def _read_number(path: Path) -> float | None:
    try:
        return float(_read(path))
    except ValueError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
