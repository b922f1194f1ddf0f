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
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from kernelcast.records.device import DeviceDescription
from kernelcast.records.private_files import write_private
from kernelcast.sampling.behaviour import DeviceBehaviour
from kernelcast.sampling.contention_meter import count_others
from kernelcast.sampling.device_check import DeviceTrial

_FORMAT = "kernelcast device findings 2"
_STANDS_S = 3600.0
Finding = TypeVar("Finding", DeviceTrial, DeviceBehaviour)


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

    def recall_trial(self, find: Callable[[], DeviceTrial]) -> DeviceTrial:
        """Read what the device's trial has told, or try it."""
        # Other programs can only make it disagree, and hide who works.
        return self._recall(
            "trial", DeviceTrial, find, lambda trial: trial.agrees and trial.cores is not None
        )

    def recall_behaviour(self, find: Callable[[], DeviceBehaviour]) -> DeviceBehaviour:
        """Read how the device behaves, or find it out."""
        return self._recall("behaviour", DeviceBehaviour, find, lambda _: False)

    def _recall(
        self,
        name: str,
        kind: type[Finding],
        find: Callable[[], Finding],
        is_sure: Callable[[Finding], bool],
    ) -> Finding:
        """Read a finding that still stands; else find it out, and keep it beside the others."""
        findings: dict[str, Any] = {}
        if self._path is not None:
            with suppress(OSError, ValueError, KeyError, TypeError):
                held = json.loads(self._path.read_bytes())
                is_new = 0 <= time.time() - self._path.stat().st_mtime <= _STANDS_S
                if held["made_for"] == self._made_for and is_new:
                    findings = dict(held["findings"])
        if name in findings:
            with suppress(TypeError):
                return kind(**findings[name])
        found = find()
        if self._path is not None and (is_sure(found) or _is_quiet()):
            findings[name] = {one.name: getattr(found, one.name) for one in fields(found)}
            with suppress(OSError):
                kept = {"made_for": self._made_for, "findings": findings}
                write_private(self._path, json.dumps(kept).encode())
        return found


def _is_quiet() -> bool:
    """Tell whether no other program is at work; our own threads wait by spinning for a while."""
    time.sleep(2e-3)
    return not count_others()
