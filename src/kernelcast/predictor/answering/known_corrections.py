"""What learned models have said of a kernel holds for its other sizes near by.

A correction asks for features, which take 5 to 20 ms to find: as long as all else that another size
of a known kernel takes. Of 12 kernels of the corpus, corrections of a launch and of its half
differ by 0.017 on the logarithmic scale (root mean square), where samples err by a tenth.
"""

import math
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from cachetools import LRUCache

from kernelcast.models.evidence.piece import FusedEstimate
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.learned import Correction, Learned
from kernelcast.records.arguments import ScalarArgument
from kernelcast.records.problem import Problem

_MOST_KERNELS = 1000
# Sizes, and whole numbers among the arguments, differ by this factor at most.
_NEAR = 4.0


@dataclass(frozen=True, slots=True)
class _Known:
    """What was learned of a launch."""

    sizes: tuple[float, ...]
    learned: Learned


class KnownCorrections:
    """The last correction of each kernel, device and local size; threads share one."""

    def __init__(self) -> None:
        self._known: LRUCache[Hashable, _Known] = LRUCache(_MOST_KERNELS)
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Forget all: another version of a model is in use."""
        with self._lock:
            self._known.clear()

    def keep(self, request: LaunchRequest, learned: Learned) -> None:
        """Keep what was learned of a launch by its features."""
        sizes = _list_sizes(request.problem)
        if learned.correction is None or sizes is None:
            return
        with self._lock:
            self._known[_name(request)] = _Known(sizes, learned)

    def find(self, request: LaunchRequest) -> Learned | None:
        """Give what was learned of a size of a live launch's kernel near by.

        Samples of problem files are kept for other processes, with features; features are asked for
        where further models shall stand beside the answer, too.
        """
        if not request.is_live or request.policy.methods.models:
            return None
        sizes = _list_sizes(request.problem)
        with self._lock:
            known = self._known.get(_name(request))
        if known is None or sizes is None or not _are_near(sizes, known.sizes):
            return None
        return known.learned


def move(learned: Learned, fused: FusedEstimate) -> Learned:
    """Give what was learned of a size as it corrects the samples of another."""
    known = learned.correction
    if known is None:
        return learned
    seconds = math.exp(fused.log_seconds + known.log_factor)
    factor = seconds / known.interval.seconds
    interval = replace(
        known.interval,
        seconds=seconds,
        low=known.interval.low * factor,
        high=known.interval.high * factor,
    )
    moved = Correction(log_factor=known.log_factor, in_domain=known.in_domain, interval=interval)
    return replace(learned, correction=moved)


def _name(request: LaunchRequest) -> Hashable:
    problem, device = request.problem, request.device
    return problem.kernel.digest, device.id, device.driver, problem.ndrange.local_size


def _list_sizes(problem: Problem) -> tuple[float, ...] | None:
    """List what a launch's work depends on; None where the device chooses the local size."""
    if problem.ndrange.local_size is None:
        return None
    return (float(problem.ndrange.work_item_count), *_list_scalars(problem))


def _list_scalars(problem: Problem) -> Iterator[float]:
    """Give the whole numbers among the arguments; numbers with a point decide no work."""
    for one in problem.arguments:
        if isinstance(one, ScalarArgument):
            yield from (float(value) for value in one.values if isinstance(value, int))


def _are_near(sizes: tuple[float, ...], others: tuple[float, ...]) -> bool:
    return len(sizes) == len(others) and all(
        a == b or (a * b > 0 and 1 / _NEAR <= a / b <= _NEAR)
        for a, b in zip(sizes, others, strict=True)
    )
