"""Measured runs, kept as they come so that an interrupted tuning goes on where it was."""

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from kernelcast.launches.data_folder import data_folder
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.private_files import make_private_folder
from kernelcast.records.problem import Problem
from kernelcast.tuning.device_runs import EventKind, TuningEvent

_SCHEMA = "kernelcast-tuning-1"


class MeasurementFile:
    """Runs by configuration and device, one JSON object a line.

    A last line that was cut off by a full disk or a killed process is dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._runs: dict[str, list[float]] = defaultdict(list)
        self._builds: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        self._read()

    def runs(self, key: str) -> tuple[float, ...]:
        """Give the measured runs of a configuration, in seconds."""
        return tuple(self._runs.get(key, ()))

    def build_s(self, key: str) -> float:
        """Give the host time of building a configuration, in seconds; 0 if it was not."""
        return self._builds.get(key, 0.0)

    def obstacle(self, key: str) -> str:
        """Say why a device refused a configuration; empty if it did not."""
        return self._refused.get(key, "")

    def add(self, key: str, event: TuningEvent) -> None:
        """Keep what happened."""
        kinds = (EventKind.BUILT, EventKind.RAN, EventKind.REFUSED)
        if event.kind not in kinds:
            return
        line = {"key": key, "kind": event.kind.value, "seconds": event.seconds,
                "reason": event.reason}  # fmt: skip
        is_new = not self.path.exists()
        try:
            make_private_folder(self.path.parent)
            with self.path.open("a", encoding="utf-8") as file:
                if is_new:
                    file.write(json.dumps({"schema": _SCHEMA}) + "\n")
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            msg = f"{self.path}: cannot be written: {error.strerror or error}"
            raise InputError(msg) from error
        self._take(line)

    def _read(self) -> None:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{self.path}: cannot be read: {error}"
            raise InputError(msg) from error
        lines = text.splitlines()
        if not lines or _parse(lines[0]).get("schema") != _SCHEMA:
            msg = f"{self.path}: is no file of tuning measurements; name another file"
            raise InputError(msg)
        if not text.endswith("\n"):
            kept = "\n".join(lines[:-1]) + "\n"
            self.path.write_text(kept, encoding="utf-8")
        for line in lines[1:]:
            self._take(_parse(line))

    def _take(self, line: dict[str, Any]) -> None:
        try:
            key, kind, seconds = str(line["key"]), line["kind"], float(line["seconds"])
        except (KeyError, TypeError, ValueError):
            return
        if kind == EventKind.RAN:
            self._runs[key].append(seconds)
        elif kind == EventKind.BUILT:
            self._builds[key] = seconds
        elif kind == EventKind.REFUSED:
            self._refused[key] = str(line.get("reason", ""))


def choose_file(problem: Problem, device: DeviceDescription) -> Path:
    """Give the file where measurements of a problem on a device are kept by default."""
    return data_folder() / "tuning" / device.id / f"{problem.name}.jsonl"


def key_of(problem: Problem, device: DeviceDescription, seed: int) -> str:
    """Say what a measurement holds for: kernel, options, sizes, arguments, device, driver."""
    parts = (
        problem.kernel.digest, problem.ndrange, problem.arguments, device.id, device.driver, seed
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _parse(line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
