"""Tells a Dask scheduler how long tasks take before the first of them has run.

Dask keeps one duration per name of tasks (the part of a task's key before its hash), learns it
while tasks run, and takes half a second for names it has never seen. The documented setting
``distributed.scheduler.default-task-durations`` gives it better ones to begin with; it is read by
the scheduler's process when the first task of a name arrives.
"""

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate
from kernelcast.records.private_files import writing

SETTING = "distributed.scheduler.default-task-durations"
"""Where Dask's configuration holds durations by name."""


def task_durations(seconds_by_name: Mapping[str, float]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, seconds in seconds_by_name.items():
        # A key is its name, a dash and a hash.
        filed = _import_dask("dask.utils").key_split(f"{name}-0123456789")
        if filed != name:
            raise InputError(
                f"{name!r}: Dask would file such tasks under {filed!r}; begin with a letter, and "
                "put no number behind a dash (triad_4096, not triad-4096)"
            )
        if not 0 < seconds < math.inf:
            raise InputError(f"{name}: takes {seconds} s; expected a positive time")
        found[name] = f"{seconds * 1e6:.3f}us"
    return found


def durations_of_estimates(
    estimates: Iterable[Estimate],
    *,
    workers: Mapping[str, int],
    names: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Make one duration per kernel, by its task's name, of its estimates on the devices that
    workers use (how many, by id)."""
    by_kernel: dict[str, dict[str, float]] = {}
    for one in estimates:
        known = by_kernel.setdefault(one.kernel, {})
        if one.device_id in known:
            msg = f"{one.kernel} on {one.device_id}: is estimated twice; call once per size"
            raise InputError(msg)
        known[one.device_id] = one.seconds
    return task_durations(
        {
            (names or {}).get(kernel, kernel): mean_duration(found, workers)
            for kernel, found in by_kernel.items()
        }
    )


def mean_duration(seconds_by_device: Mapping[str, float], workers: Mapping[str, int]) -> float:
    """Compute the harmonic mean of a task's times: a worker twice as fast runs twice as many."""
    used = {device: count for device, count in workers.items() if count > 0}
    missing = sorted({*used} - {*seconds_by_device})
    if missing or not used:
        msg = f"no time for {', '.join(missing)}" if missing else "no workers; give at least one"
        raise InputError(msg)
    for device in used:
        if not 0 < seconds_by_device[device] < math.inf:
            msg = f"{device}: takes {seconds_by_device[device]} s; expected a positive time"
            raise InputError(msg)
    tasks_per_s = sum(count / seconds_by_device[device] for device, count in used.items())
    return sum(used.values()) / tasks_per_s


@contextmanager
def expected_durations(durations: Mapping[str, str]) -> Iterator[None]:
    """Let schedulers that are started in this process know durations beside the user's own."""
    config = _import_dask("dask.config")
    known = config.get(SETTING, default={}) or {}
    with config.set({SETTING: {**known, **durations}}):
        yield


def write_dask_config(path: Path, durations: Mapping[str, str]) -> None:
    """Write a file such as ``~/.config/dask/kernelcast.yaml``, for schedulers in other
    processes."""
    section, _, setting = SETTING.rpartition(".")
    content: dict[str, Any] = {setting: dict(sorted(durations.items()))}
    for name in reversed(section.split(".")):
        content = {name: content}
    with writing(path, "the configuration"):
        path.write_text(yaml.safe_dump(content), encoding="utf-8")


def _import_dask(module: str) -> Any:  # noqa: ANN401 - the library ships no types
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError("Dask is not installed: pip install 'kernelcast[cluster]'") from error
