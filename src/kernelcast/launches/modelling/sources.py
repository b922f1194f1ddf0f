"""Where launches to be modelled come from, and the same launch with other local sizes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcast.analytic.gpu.hit_rates import HitRates
from kernelcast.expressions import Symbol, SymbolKind, conjunction, less
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.modelling.access_file import (
    WrittenLaunch,
    is_access_file,
    read_access_file,
)
from kernelcast.launches.modelling.folding import fold
from kernelcast.launches.modelling.launches import (
    ModelledKernel,
    choose_local_size,
    model_kernel,
    model_written,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.problem_file.located import Number
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import OperationCounts, add_weighted
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, WarpCounters

Folds = tuple[tuple[int, int], ...]


@dataclass(slots=True, kw_only=True, eq=False)
class LaunchSource:
    """A kernel with its updates, to be launched in many ways."""

    name: str
    """What tables call it."""
    kernel: ModelledKernel
    ndrange: NDRange
    """One work-item per update."""
    folds: Folds = ()
    """Axes and updates per work-item, unless another folding is asked for."""
    registers: int | None = None
    """32-bit registers per work-item."""
    executed: OperationCounts | None = None
    """What a work-item executes on average; counted from the source where it is None."""
    recorded: RecordedAddresses | None = None
    """Addresses of sampled work-groups; of the local size of `ndrange` only."""
    warps: tuple[WarpCounters, ...] = ()
    """How work-items that run in step share what is executed."""
    hit_rates: HitRates | None = None
    """Of caches, instead of those that come with the model."""
    problem: Problem | None = None
    """The problem, if there is one that a device could run."""

    def launch(
        self, local_size: tuple[int, ...] | None = None, folds: Folds | None = None
    ) -> ModelledLaunch:
        """Give the launch with a local size and a folding; the source's own when left out."""
        given, _ = choose_local_size(self.ndrange)
        ndrange = self.ndrange if local_size is None else self._reshape(local_size)
        is_own = ndrange.local_size in {None, given.local_size}
        launch = self.kernel.launch(
            ndrange,
            self._count(ndrange),
            warps=self.warps,
            registers=self.registers,
            recorded=self.recorded if is_own else None,
        )
        if local_size is not None and local_size != ndrange.local_size:
            launch = pad(launch, local_size)
        for axis, times in self.folds if folds is None else folds:
            launch = fold(launch, axis, times)
        return launch

    def _reshape(self, local_size: tuple[int, ...]) -> NDRange:
        """Give the index space another local size; a written kernel may take a larger one."""
        own, sizes = self.ndrange.local_size, self.ndrange.global_size
        if self.kernel.is_cooperative and own is not None and local_size != own:
            msg = (
                f"{self.name}: the kernel shares local memory that is laid out for local size "
                f"{own}, not for {local_size}; change the problem's parameters instead"
            )
            raise InputError(msg)
        if self.problem is None and len(local_size) == len(sizes):
            local_size = tuple(min(pair) for pair in zip(local_size, sizes, strict=True))
        return replace(self.ndrange, local_size=local_size)

    def _count(self, ndrange: NDRange) -> OperationCounts:
        """Count what is executed, once for all local sizes where they do not matter."""
        if self.executed is not None:
            return self.executed
        chosen, _ = choose_local_size(ndrange)
        counters = self.kernel.count(chosen)
        self.warps = counters.warps
        if not self.kernel.counts_by_work_group:
            self.executed = counters.executed
        return counters.executed


def read_launch_source(
    path: Path, *, parameters: Mapping[str, Number] | None = None
) -> LaunchSource:
    """Read a problem file or an access file."""
    if is_access_file(path):
        return use_written(read_access_file(path, parameters=parameters))
    problem = read_problem(path, parameters=parameters)
    return use_problem(problem)


def use_problem(problem: Problem) -> LaunchSource:
    """Take a problem for a source of launches."""
    return LaunchSource(
        name=problem.name, kernel=model_kernel(problem), ndrange=problem.ndrange, problem=problem
    )


def use_written(written: WrittenLaunch) -> LaunchSource:
    """Take a written kernel for a source of launches."""
    return LaunchSource(
        name=written.kernel.name,
        kernel=model_written(written.kernel),
        ndrange=written.ndrange,
        folds=written.folds,
        registers=written.registers,
    )


def pad(launch: ModelledLaunch, local_size: tuple[int, ...]) -> ModelledLaunch:
    """Enlarge the index space to at least one work-group; what is added does nothing."""
    ndrange = launch.ndrange
    sizes = tuple(max(pair) for pair in zip(ndrange.global_size, local_size, strict=True))
    guard = conjunction(
        *(
            less(Symbol(SymbolKind.GLOBAL_ID, axis=axis), offset + size)
            for axis, (offset, size, enlarged) in enumerate(
                zip(ndrange.global_offset, ndrange.global_size, sizes, strict=True)
            )
            if enlarged > size
        )
    )
    return replace(
        launch,
        ndrange=replace(ndrange, global_size=sizes, local_size=local_size),
        accesses=tuple(
            replace(one, guard=conjunction(guard, one.guard)) for one in launch.accesses
        ),
        executed=add_weighted([(launch.executed, ndrange.work_item_count / math.prod(sizes))]),
    )


def record_accesses(
    source: LaunchSource,
    device_id: str | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> LaunchSource:
    """Run a few instrumented work-groups and add their addresses and counts."""
    # Drivers take a moment to load; most models need none.
    from kernelcast.features.counting.summary import summarise
    from kernelcast.launches.counting import count_launch
    from kernelcast.launches.preparing import prepared_launch
    from kernelcast.sampling.counting import CountingLaunch
    from kernelcast.sampling.discovery import choose_device, find_devices
    from kernelcast.sampling.session import open_session

    if source.problem is None:
        msg = f"{source.name}: no device can run accesses that were written down; give a problem"
        raise InputError(msg)
    devices = find_devices()
    wanted = device_id or devices[0][0].id
    session = open_session(*choose_device(wanted, devices))
    problem = source.problem.on(session.description)
    with prepared_launch(session, problem, CountingLaunch, seed=0) as launch:
        counted = count_launch(launch, problem.kernel, report=report)
    counters = summarise(source.kernel.facts, counted.sample)
    return replace(
        source,
        ndrange=counted.ndrange,
        executed=counters.executed,
        recorded=counted.addresses,
        warps=counters.warps,
    )
