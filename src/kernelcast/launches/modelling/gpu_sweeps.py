"""Sweeps of the GPU model over local sizes, foldings and domain sizes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.modelling.folding import OF_WORK_GROUPS
from kernelcast.launches.modelling.gpu_estimates import (
    Configuration,
    configure,
    configure_launch,
    write_launch,
)
from kernelcast.launches.modelling.sources import Folds, LaunchSource
from kernelcast.records.errors import InputError, NDRangeError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.traits import Trait

_DEEPEST_GROUP = 64
"""Work-items of a work-group along dimension 2: the limit of NVIDIA's devices."""
_USUAL_WARP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All configurations of a kernel on a machine, fastest first."""

    configurations: tuple[Configuration, ...]
    """Those the model has an answer for."""
    refused: tuple[tuple[str, str], ...] = ()
    """Configurations that cannot be launched, and why."""


def list_local_sizes(ndrange: NDRange, machine: MachineDescription) -> list[tuple[int, ...]]:
    """List local sizes worth trying: powers of two per dimension, at least a warp of work-items."""
    most = _require(machine, machine.max_work_group_size, "max_work_group_size")
    warp = machine.warp_width.value if machine.warp_width else _USUAL_WARP
    least = min(warp, ndrange.work_item_count)
    limits = [most, most, _DEEPEST_GROUP]
    sides = [
        [1 << power for power in range(min(limit, size).bit_length())]
        for limit, size in zip(limits, ndrange.global_size, strict=False)
    ]
    return [one for one in product(*sides) if least <= math.prod(one) <= most]


def list_folds(source: LaunchSource) -> list[Folds]:
    """List foldings worth trying: none, and two updates along each dimension but the first.

    Folding along dimension 0 would spread neighbouring work-items over memory.
    """
    return [(), *(((axis, 2),) for axis in range(1, source.ndrange.dimensions))]


def sweep_local_sizes(
    source: LaunchSource,
    machine: MachineDescription,
    folds: Sequence[Folds] | None = None,
    report: Callable[[int, int], None] = lambda _, __: None,
) -> Sweep:
    """Ask for all local sizes and some foldings, and rank them by their time."""
    wanted = [source.folds] if folds is None else list(folds)
    sizes = list_local_sizes(source.ndrange, machine)
    found: list[Configuration] = []
    refused: list[tuple[str, str]] = []
    total = len(sizes) * len(wanted)
    launches = _Launches(source=source)
    for done, (each, size) in enumerate(product(wanted, sizes)):
        report(done, total)
        try:
            launch = launches.give(size, each)
            found.append(configure_launch(source, machine, launch, each))
        except InputError as error:
            refused.append((write_launch(size, each), str(error)))
    report(total, total)
    if not found:
        reason = refused[0][1] if refused else "no local size fits"
        msg = f"{source.name}: no local size can be modelled on {machine.id}: {reason}"
        raise InputError(msg)
    found.sort(key=lambda one: one.estimate.seconds)
    return Sweep(configurations=tuple(found), refused=tuple(refused))


@dataclass(slots=True, kw_only=True)
class _Launches:
    """A source's launches, analysed once where their local size does not matter."""

    source: LaunchSource
    model: ModelledLaunch | None = None

    def give(self, local_size: tuple[int, ...], folds: Folds) -> ModelledLaunch:
        """Give the launch with a local size that its index space can be cut into."""
        if self.model is not None and not folds:
            return replace(self.model, ndrange=replace(self.model.ndrange, local_size=local_size))
        launch = self.source.launch(local_size, folds)
        if not folds and _is_alike_for_all(self.source, launch):
            self.model = launch
        return launch


def _is_alike_for_all(source: LaunchSource, launch: ModelledLaunch) -> bool:
    """Tell whether nothing in a launch but its index space depends on the local size."""
    kernel = source.kernel
    if kernel.is_cooperative or kernel.counts_by_work_group or source.recorded is not None:
        return False
    return all(
        symbol.kind not in OF_WORK_GROUPS
        for accesses in (kernel.facts.accesses, launch.accesses)
        for one in accesses
        for symbol in one.guard.symbols().union(
            *(loop.condition.symbols() for loop in one.loops),
            () if one.offset_bytes is None else one.offset_bytes.symbols(),
        )
    )


def sweep_sizes(
    make_source: Callable[[int], LaunchSource],
    values: Sequence[int],
    machine: MachineDescription,
    local_sizes: Sequence[tuple[int, ...] | None] = (None,),
) -> Iterator[tuple[int, Configuration | None]]:
    """Ask for domains of several sizes, each with some local sizes."""
    for value in values:
        source = make_source(value)
        for local_size in local_sizes:
            try:
                found = configure(source, machine, local_size)
            except NDRangeError:
                found = None
            yield value, found


def _require(machine: MachineDescription, trait: Trait[int] | None, name: str) -> int:
    if trait is None:
        msg = (
            f"machine {machine.id}: {name} is missing; `kernelcast calibrate` finds it on the "
            "device itself, or add it to the description"
        )
        raise InputError(msg)
    return trait.value
