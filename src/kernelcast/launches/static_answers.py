"""Answers for launches of a kernel that nothing ran of; launches that do the same share the work.

Nearly all of an answer goes into what some work-groups execute and which lines they touch.
`LaunchShapes` tells launches that are alike in all of that; of a second one, only totals are
computed.
"""

import threading
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from cachetools import LRUCache

from kernelcast.analytic.cpu.estimate import CpuWork, estimate_work, study_work
from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.analytic.cpu.opencl.index_space import (
    Looked,
    Place,
    choose_places,
    find_before,
)
from kernelcast.expressions.evaluation import IntArray
from kernelcast.expressions.launch_shapes import LaunchShape, LaunchShapes, LookedAt
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.features.counting.open_loops import doubt_counts
from kernelcast.features.counting.sampled_groups import choose_numbers, choose_work_groups
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import WARP_WIDTHS, summarise
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.problem import Problem

_MOST_SHAPES = 256


@dataclass(frozen=True, slots=True)
class _Known:
    """What launches that do the same have in common."""

    work: CpuWork
    doubt: float


class KernelAnswers:
    """Answers launches of a kernel with one local size on one CPU device.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    local_size : tuple of int
        Of the launches.
    machine : MachineDescription
        A calibrated CPU device.
    """

    def __init__(
        self, kernel: Kernel, local_size: tuple[int, ...], machine: MachineDescription
    ) -> None:
        self._machine = machine
        self._device = read_device(machine)
        self._facts = analyse(kernel).facts
        self._names = [one.name for one in self._facts.parameters]
        self._shapes = LaunchShapes(self._facts, local_size, self._device.line_bytes)
        self._known: dict[Hashable, _Known] = {}
        self._lock = threading.Lock()
        self.studied = 0
        """How many launches shared nothing with one before."""

    def answer(self, problem: Problem, ndrange: NDRange) -> AnalyticEstimate:
        """Answer one launch.

        Raises
        ------
        KernelcastError
            If the analytic model has no answer.
        """
        looked_at = look_at(ndrange)
        shape = self._identify(problem, ndrange, looked_at)
        key = None if shape is None else (shape.key, _list_local_bytes(problem))
        known = None if key is None else self._known.get(key)
        if known is None:
            self.studied += 1
            known = self._study(replace(problem, ndrange=ndrange), shape, looked_at)
            if key is not None:
                self._keep(key, known)
        buffers = {
            name: one.bytes
            for name, one in zip(self._names, problem.arguments, strict=True)
            if isinstance(one, BufferArgument)
        }
        found = estimate_work(known.work, self._device, ndrange, buffers)
        return replace(found, doubt=known.doubt) if known.doubt else found

    def _identify(
        self, problem: Problem, ndrange: NDRange, looked_at: LookedAt
    ) -> LaunchShape | None:
        if len(problem.arguments) != len(self._names):
            return None
        scalars = bind_scalars(self._facts, problem.arguments)
        return self._shapes.identify(ndrange, scalars, looked_at)

    def _keep(self, key: Hashable, known: _Known) -> None:
        with self._lock:
            while len(self._known) >= _MOST_SHAPES:
                del self._known[next(iter(self._known))]
            self._known[key] = known

    def _study(self, problem: Problem, shape: LaunchShape | None, looked_at: LookedAt) -> _Known:
        ndrange, looked = problem.ndrange, None
        groups = dict.fromkeys(choose_work_groups(ndrange), 1)
        if shape is not None:
            numbers = [*groups]
            groups = {numbers[one]: times for one, times in shape.count_alike().items()}
            looked = _choose_alike(shape, looked_at)
        scalars = bind_scalars(self._facts, problem.arguments)
        sample = count_statically(self._facts, ndrange, scalars, [*groups])
        # Vectors are no wider than the narrowest warps.
        counters = summarise(
            self._facts, sample.repeat([*groups.values()]), warp_widths=WARP_WIDTHS[:1]
        )
        launch = model_launch(problem, counters=counters)
        work = study_work(launch, self._device, looked=looked)
        return _Known(work, doubt_counts(self._facts, counters).half_width)


_answers: LRUCache[Hashable, KernelAnswers] = LRUCache(64)
_answers_lock = threading.Lock()


def recall(kernel: Kernel, ndrange: NDRange, machine: MachineDescription) -> KernelAnswers:
    """Give what is known of a kernel with a local size on a device."""
    local_size = ndrange.known_local_size
    # Answers hold their machine, so that its place in memory names it: it cannot be hashed.
    key = kernel, local_size, id(machine)
    with _answers_lock:
        found = _answers.get(key)
    if found is None:
        found = KernelAnswers(kernel, local_size, machine)
        with _answers_lock:
            _answers[key] = found
    return found


def _choose_alike(shape: LaunchShape, looked_at: LookedAt) -> Looked:
    """Give one of the places that touch lines alike, with its neighbours."""
    ids = [(x, y, z) for x, y, z in looked_at.work_groups[1:, looked_at.alone :].T.tolist()]
    own, others = looked_at.pairs.tolist()
    count = own[-1] + 1 if own else len(ids)
    kinds: dict[tuple[object, ...], list[int]] = {}
    for place in range(count):
        pairs = [number for number, one in enumerate(own) if one == place]
        kind = (
            shape.together[place], *(shape.together[others[one]] for one in pairs),
            shape.shared[:, pairs].tobytes() if shape.shared.size else b"",
        )  # fmt: skip
        kinds.setdefault(kind, []).append(place)
    every = Counter(shape.together)
    shares: dict[Place, int] = {}
    for place, *_ in kinds.values():
        near = [other for one, other in zip(own, others, strict=True) if one == place]
        for one in (place, *near):
            shares.setdefault(ids[one], every.pop(shape.together[one], 0))
    return Looked({ids[same[0]]: len(same) for same in kinds.values()}, shares)


def _list_local_bytes(problem: Problem) -> tuple[int, ...]:
    return tuple(one.bytes for one in problem.arguments if isinstance(one, LocalArgument))


def look_at(ndrange: NDRange) -> LookedAt:
    """Give the work-groups by which a launch is judged: for counts, and for lines."""
    x, y, z = counts = (*ndrange.group_counts, 1, 1)[:MAX_DIMENSIONS]
    alone = choose_numbers(x * y * z)
    places = choose_places(counts)
    index = {place: number for number, place in enumerate(places)}
    axes = (x > 1, y > 1, z > 1)
    several = [axis for axis in range(MAX_DIMENSIONS) if axes[axis]]
    others = tuple([
        index.setdefault(find_before(place, axis), len(index))
        for place in places
        for axis in several
    ])  # fmt: skip
    work_groups: list[int] = []
    for one in alone:
        work_groups += (1, one % x, one // x % y, one // (x * y))
    for place in index:
        work_groups += (1, *place)
    return LookedAt(
        np.array(work_groups).reshape(-1, 1 + MAX_DIMENSIONS).T,
        len(alone),
        _pair(len(several), others),
        axes,
    )


@lru_cache(maxsize=256)
def _pair(times: int, others: tuple[int, ...]) -> IntArray:
    """Pair places, each of which has so many neighbours, with these."""
    return np.array(([one // times for one in range(len(others))], others), dtype=np.int64)
