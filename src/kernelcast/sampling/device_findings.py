"""What trials of a device have found, on disk: the next process need not try it again.

To try the timer and to learn how the device behaves takes 0.1 to 0.2 s. What other programs may
have disturbed is not kept, and nothing for longer than `_STANDS_S`: virtual machines get faster and
slower.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kernelcast.records.device import DeviceDescription, TimerCheck
from kernelcast.records.private_files import write_private
from kernelcast.sampling.behaviour import DeviceBehaviour
from kernelcast.sampling.other_programs import count_others

_FORMAT: Final = "kernelcast device findings 1"
_STANDS_S: Final = 3600.0
_PAUSE_S: Final = 2e-3


class DeviceFindings:
    """Keeps findings about one device; several processes may share them.

    Parameters
    ----------
    description : DeviceDescription
        The device; findings about another driver of it do not count.
    folder : Path or None
        Where; None: nothing is kept.
    """

    def __init__(self, description: DeviceDescription, folder: Path | None = None) -> None:
        self._path = folder and folder / "devices" / f"{description.id}.json"
        self._made_for = [_FORMAT, description.driver, os.cpu_count()]

    def recall_timer(self, find: Callable[[], TimerCheck]) -> TimerCheck:
        """Give what is known of the timer, or find it out."""
        held = self._read().get("timer", {})
        with suppress(TypeError):
            return TimerCheck(**held)
        found = find()
        if found.agrees or _is_quiet():  # other programs can only make it disagree
            self._keep("timer", asdict(found))
        return found

    def recall_behaviour(self, find: Callable[[], DeviceBehaviour]) -> DeviceBehaviour:
        """Give how the device behaves, or find it out."""
        held = self._read().get("behaviour", {})
        with suppress(TypeError, ValueError, KeyError):
            return DeviceBehaviour(**held)
        found = find()
        if _is_quiet():
            self._keep("behaviour", _write_behaviour(found))
        return found

    def _read(self) -> dict[str, Any]:
        """Give the findings that still stand, by their names."""
        if self._path is None:
            return {}
        try:
            held = json.loads(self._path.read_bytes())
            stands = held["made_for"] == self._made_for
            is_new = 0 <= time.time() - self._path.stat().st_mtime <= _STANDS_S
            return dict(held["findings"]) if stands and is_new else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _keep(self, name: str, finding: dict[str, Any]) -> None:
        """Write a finding beside the others; failing that, it is not kept."""
        if self._path is None:
            return
        held = {"made_for": self._made_for, "findings": {**self._read(), name: finding}}
        with suppress(OSError):
            write_private(self._path, json.dumps(held).encode())


def _write_behaviour(found: DeviceBehaviour) -> dict[str, Any]:
    """Give what JSON holds: times are floats there, whatever they were measured as."""
    return {
        "launch_overhead_s": float(found.launch_overhead_s),
        "saturated_from": found.saturated_from,
        "settle_steps": found.settle_steps,
        "settled_s": float(found.settled_s),
    }


def _is_quiet() -> bool:
    """Tell whether no other program is at work; our own threads wait by spinning for a while."""
    time.sleep(_PAUSE_S)
    return not count_others()
