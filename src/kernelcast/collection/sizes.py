"""Chooses the sizes at which a kernel is collected on a device, and remembers them."""

import hashlib
import json
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kernelcast.collection.settings import CollectionSettings
from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.private_files import write_private
from kernelcast.training_data.applications import CorpusKernel, SizeRange
from kernelcast.training_data.store import StoreError


def read_sizes(
    device: DeviceDescription, kernel: CorpusKernel, settings: CollectionSettings
) -> tuple[int, ...]:
    """Return the sizes that were chosen before; none if anything they depend on has changed."""
    with suppress(OSError, ValueError, KeyError, TypeError):  # not there or damaged: chosen anew
        content = json.loads(_locate(device, kernel).read_text(encoding="utf-8"))
        if content["depends_on"] == _digest(device, kernel, settings):
            return tuple(int(size) for size in content["sizes"])
    return ()


def write_sizes(
    device: DeviceDescription,
    kernel: CorpusKernel,
    settings: CollectionSettings,
    sizes: tuple[int, ...],
) -> None:
    path = _locate(device, kernel)
    content = {"depends_on": _digest(device, kernel, settings), "sizes": list(sizes)}
    try:
        write_private(path, json.dumps(content).encode())
    except OSError as error:
        msg = f"{path}: the chosen sizes cannot be kept: {error.strerror or error}"
        raise StoreError(msg) from error


def _locate(device: DeviceDescription, kernel: CorpusKernel) -> Path:
    folder = data_folder() / "collection" / device.id / kernel.application
    return folder / f"{kernel.stem}.json"


def _digest(device: DeviceDescription, kernel: CorpusKernel, settings: CollectionSettings) -> str:
    """Hash what sizes depend on: driver, files of the application, wanted times."""
    told = hashlib.sha256()
    if kernel.suite:
        for path in sorted(kernel.problem_path.parent.glob("*")):
            if path.is_file():
                told.update(path.name.encode() + b"\0" + path.read_bytes())
    else:  # other files of the folder belong to other kernels, or are data
        told.update(kernel.problem_path.read_bytes())
        told.update(read_problem(kernel.problem_path).kernel.digest.encode())
    wanted = [device.driver, settings.sizes, settings.shortest_s, settings.longest_s]
    told.update(json.dumps(wanted).encode())
    return told.hexdigest()


# One trial changes the size by this factor in time at most: growth may differ from its exponent.
_LARGEST_STEP = 64.0
# Where too few allowed sizes lie in the range of times, it is widened by these factors.
_WIDER = (1.0, 2.0, 4.0, 8.0)


def find_anchor(
    size: SizeRange, start: int, goal_s: float, predict: Callable[[int], float]
) -> tuple[int, float]:
    """Look for a size at which a launch takes about the goal; return it with its seconds."""
    value = size.fit(start)
    best: tuple[int, float] | None = None
    known: tuple[int, float] | None = None
    tried: set[int] = set()
    largest = size.most
    for _ in range(6):
        if value in tried:
            break
        tried.add(value)
        try:
            seconds = predict(value)
        except DeviceLimitError:
            if value == size.least:
                raise
            largest = value
            value = size.scale(value, 1 / 8)
            continue
        # Give how time really grows between two sizes, within a factor of two of what was told.
        if known is None or known[0] == value:
            exponent = size.exponent
        else:
            seen = math.log(seconds / known[1]) / math.log(value / known[0])
            exponent = min(max(seen, 0.5 * size.exponent), 2 * size.exponent)
        known = (value, seconds)
        if best is None or _distance(seconds, goal_s) < _distance(best[1], goal_s):
            best = (value, seconds)
        # A size whose time is predicted this near to the goal needs no other trial.
        if _distance(seconds, goal_s) < math.log(1.3):
            break
        step = min(max(goal_s / seconds, 1 / _LARGEST_STEP), _LARGEST_STEP)
        value = min(size.fit(value * step ** (1 / exponent)), largest)
    if best is None:
        return size.least, predict(size.least)
    return best


def choose_sizes(
    size: SizeRange, anchor: tuple[int, float], times_s: tuple[float, float], count: int
) -> tuple[int, ...]:
    """Choose sizes whose times spread evenly, on a logarithmic scale, over a range."""
    shortest_s, longest_s = times_s
    chosen: set[int] = set()
    for factor in _WIDER:
        low, high = math.log(shortest_s / factor), math.log(longest_s * factor)
        # A finer grid than needed, since several times may share the nearest allowed size.
        steps = max(count - 1, 1) * (1 if factor == 1 else 8)
        found = {
            size.scale(anchor[0], math.exp(low + (high - low) * step / steps) / anchor[1])
            for step in range(steps + 1)
        }
        nearest = sorted(found - chosen, key=lambda one: (_distance(one, anchor[0]), one))
        chosen |= set(nearest[: count - len(chosen)])
        if len(chosen) >= count:
            break
    return tuple(sorted(chosen))


def lengthen_times(times_s: tuple[float, float], fill_s: float) -> tuple[float, float]:
    """Lengthen times until launches fill the device sixteen times, of which each takes `fill_s`."""
    # Of launches with fewer units, a pair of samples takes most.
    factor = max(1.0, 16 * fill_s / times_s[0])
    return times_s[0] * factor, times_s[1] * factor


def _distance(value: float, goal: float) -> float:
    return abs(math.log(value / goal))
