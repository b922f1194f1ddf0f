"""Where launches to be modelled come from, and the same launch with other local sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcast.analytic.gpu.hit_rates import HitRates
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
from kernelcast.launches.modelling.padding import pad
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.problem_file.located import Number
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import OperationCounts
from kernelcast.records.problem import Problem
from kernelcast.records.recorded_addresses import RecordedAddresses
from kernelcast.records.software_counters import WarpCounters

Folds = tuple[tuple[int, int], ...]


@dataclass(slots=True, kw_only=True, eq=False)
class LaunchSource:
    """A kernel with its updates, to be launched in many ways."""

    name: str
    """What tables call it."""
    kernel: ModelledKernel
    """Kernel and arguments."""
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
        """Give the launch with a local size and a folding; the source's own when left out.

        Raises
        ------
        InputError
            If the kernel cannot be launched so.
        """
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
    """Read a problem file or an access file.

    Raises
    ------
    InputError
        If it cannot be read or used.
    """
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
