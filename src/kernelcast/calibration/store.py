"""Keeps what an unfinished calibration has measured, so that it can go on later."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.machine_file import read_machine, write_machine
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, MachineFileError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.private_files import write_private
from kernelcast.sampling.microbenchmarks.bench import Effort

_STATE = "state.json"


@dataclass(slots=True, kw_only=True)
class CalibrationStore:
    """A folder with one machine description per microbenchmark that is done."""

    folder: Path
    """Of one device and effort."""
    driver: str
    """Version that the parts were measured with."""
    kernelcast: str
    """Version that measured them."""
    durations_s: dict[str, float] = field(default_factory=dict)
    """How long each microbenchmark took at its last run, in seconds; outlives the parts."""

    def read(self, name: str) -> MachineDescription | None:
        """Give what a microbenchmark has found already; None if it has not run."""
        path = self._part(name)
        if not path.is_file():
            return None
        try:
            return read_machine(path)
        except MachineFileError:  # damaged: it is measured again
            return None

    def write(self, name: str, part: MachineDescription, duration_s: float) -> None:
        """Keep what a microbenchmark has found."""
        path = self._part(name)
        write_machine(path, part)
        try:
            read_machine(path)
        except MachineFileError:
            path.unlink()
            raise
        self.durations_s[name] = duration_s
        self.save_state()

    def clear(self, names: Iterable[str] | None = None) -> None:
        """Forget the parts of those names, or all."""
        paths = self.folder.glob("*.yaml") if names is None else map(self._part, names)
        for path in list(paths):
            path.unlink(missing_ok=True)

    def save_state(self) -> None:
        """Write versions and durations."""
        state = {
            "driver": self.driver,
            "kernelcast": self.kernelcast,
            "durations_s": self.durations_s,
        }
        path = self.folder / _STATE
        try:
            write_private(path, json.dumps(state, indent=1).encode())
        except OSError as error:
            msg = (
                f"{path}: the calibration cannot be kept: {error.strerror or error}; "
                "name another folder by KERNELCAST_DATA"
            )
            raise InputError(msg) from error

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}.yaml"


def open_store(
    device: DeviceDescription, effort: Effort, *, is_fresh: bool = False
) -> CalibrationStore:
    """Open the store of a device and effort."""
    folder = data_folder() / "calibrations" / device.id / str(effort)
    state = _read_state(folder / _STATE)
    store = CalibrationStore(folder=folder, driver=device.driver, kernelcast=version("kernelcast"))
    store.durations_s = _read_durations(state)
    is_same = (state.get("driver"), state.get("kernelcast")) == (store.driver, store.kernelcast)
    if is_fresh or not is_same:
        store.clear()
    store.save_state()
    return store


def _read_state(path: Path) -> dict[str, object]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _read_durations(state: dict[str, object]) -> dict[str, float]:
    found = state.get("durations_s")
    pairs = found.items() if isinstance(found, dict) else ()
    return {str(name): float(value) for name, value in pairs if isinstance(value, int | float)}
