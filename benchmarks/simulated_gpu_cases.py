"""What `simulated_gpu.py` knows of a kernel before it samples, and its estimates without learning.

Nothing here is chosen by the times of whole launches. A kernel's volumes come from its source, or
from the counters of its sample where addresses depend on data; the work of its work-groups from
its source, or from software counters of a few. Bandwidths are those of two other kernels: what
microbenchmarks would measure.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from write_back import VolumeCorrection, WriteBack, correct_by_volumes

from kernelcast.analytic.gpu.machine import DramRoof, GpuMachine, read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.features.active_groups import find_active_box
from kernelcast.features.counting.sampled_groups import choose_work_groups
from kernelcast.features.counting.work_profile import profile_work
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.launches import ModelledKernel, model_kernel
from kernelcast.models.linear import two_point
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from support.simulated_gpu import SimulatedKernel, SimulatedRun, make_problem
from support.simulated_gpu.runs import SECTOR_BYTES

DEVICE = "SM7_QV100/5/2"
# As of launches/weighing.py: below this spread of the work weights change nothing.
EVEN = 0.05
COUNTED_GROUPS = 32
COUNTED_IN_WINDOW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A simulated kernel with what is known of it.

    Parameters
    ----------
    whole : SimulatedRun
        The truth.
    volumes : WriteBack
        Per work-group.
    is_from_source : bool
        Whether the volumes are; else from counters of the first work-groups.
    active : GroupBox
        Work-groups that do anything.
    is_even : bool
        Whether work-groups inside of it do the same.
    work : tuple of float
        Of each work-group over the mean of those that do anything; 0 for the others.
    """

    kernel: SimulatedKernel
    whole: SimulatedRun
    volumes: WriteBack
    is_from_source: bool
    active: GroupBox
    is_even: bool
    work: tuple[float, ...]

    @property
    def unit(self) -> int:
        """Work-groups that the device holds at once: one P_sat."""
        return self.kernel.concurrency

    @property
    def total(self) -> float:
        """Work of the whole launch, in work-groups of mean work."""
        return sum(self.work)

    @property
    def are_all_alike(self) -> bool:
        """Whether the first work-groups stand for all."""
        return self.is_even and self.active.work_group_count == self.kernel.work_groups

    @property
    def counting_p_sat(self) -> float:
        """What software counters cost to tell even work from uneven, in P_sat."""
        return COUNTED_GROUPS / self.unit if self.kernel.counted else 0.0

    def first(self, multiple: int) -> SimulatedRun:
        """Give the launch of the first work-groups, of so many P_sat."""
        return self.kernel.require(0, multiple * self.unit, self.whole.warmed_by)

    def work_of(self, run: SimulatedRun) -> float:
        """Give a run's work in work-groups of mean work."""
        return sum(self.work[run.begin : run.end])


def make_cases(kernels: Iterable[SimulatedKernel], cache_folder: Path) -> list[Case]:
    """Read what is known of each kernel whose whole launch was simulated."""
    machine = simulated_machine()
    cases = []
    for kernel in kernels:
        if kernel.gpu.id == DEVICE and kernel.whole is not None:
            problem = make_checked_problem(kernel, cache_folder)
            cases.append(_make_case(kernel, kernel.whole, problem, machine))
    return cases


def simulated_machine() -> GpuMachine:
    """Give the V100 of the shipped description, cut down as the simulator's was."""
    whole = read_machine(find_machine("v100"))
    return replace(
        whole, compute_units=5, l2_bytes=384 << 10, l2_units=5, dram_fetch_bytes=SECTOR_BYTES
    )


def make_checked_problem(kernel: SimulatedKernel, cache_folder: Path) -> Problem:
    """Give the problem, with the index space that was simulated."""
    problem = make_problem(kernel, cache_folder)
    assert problem.ndrange.group_counts == kernel.group_counts, kernel.name
    return problem


def _make_case(
    kernel: SimulatedKernel, whole: SimulatedRun, problem: Problem, machine: GpuMachine
) -> Case:
    modelled = model_kernel(problem)
    active = find_active_box(modelled.facts, problem.ndrange, modelled.scalars)
    assert active is not None, kernel.name
    is_even, work = _weigh(kernel, modelled, problem.ndrange, active)
    first = kernel.require(0, 3 * kernel.concurrency, whole.warmed_by)
    volumes, is_from_source = _find_volumes(kernel, modelled, problem.ndrange, machine, first)
    return Case(
        kernel=kernel,
        whole=whole,
        volumes=replace(volumes, is_clean=whole.warmed_by is None),
        is_from_source=is_from_source,
        active=active,
        is_even=is_even,
        work=work,
    )


def _find_volumes(
    kernel: SimulatedKernel,
    modelled: ModelledKernel,
    ndrange: NDRange,
    machine: GpuMachine,
    first: SimulatedRun,
) -> tuple[WriteBack, bool]:
    """Give volumes per work-group, and whether the source told them."""
    allocated = SECTOR_BYTES * first.count_per_work_group("l2_misses")
    loaded = SECTOR_BYTES * first.count_per_work_group("dram_read_sectors")
    try:
        found = compute_volumes(modelled.launch(ndrange, registers=kernel.registers), machine)
    except InputError:
        stored, is_from_source = max(0.0, allocated - loaded), False
    else:
        stored, is_from_source = found.dram_store_bytes / kernel.work_groups, True
        if not allocated:  # the first work-groups do nothing
            loaded = found.dram_load_bytes / kernel.work_groups
            allocated = loaded + stored
    volumes = WriteBack(
        l2_bytes=kernel.gpu.l2_bytes,
        loaded_bytes=loaded,
        stored_bytes=stored,
        allocated_bytes=allocated,
    )
    return volumes, is_from_source


def _weigh(
    kernel: SimulatedKernel, modelled: ModelledKernel, ndrange: NDRange, active: GroupBox
) -> tuple[bool, tuple[float, ...]]:
    """Tell whether active work-groups do the same, and give the work of each work-group."""
    if kernel.counted:
        return _weigh_by_counters(kernel, ndrange)
    inside = np.zeros(ndrange.group_counts[::-1], dtype=np.bool_)
    inside[
        tuple(slice(a, a + n) for a, n in zip(active.start[::-1], active.shape[::-1], strict=True))
    ] = True
    is_active = inside.ravel()
    profile = profile_work(modelled.facts, ndrange, modelled.scalars, ())
    assert profile is not None
    if profile.spread < EVEN:
        return True, tuple(float(one) for one in is_active)
    boxes = [
        GroupBox(start=_locate(int(number), ndrange.group_counts), shape=(1,) * ndrange.dimensions)
        for number in np.flatnonzero(is_active)
    ]
    found = profile_work(modelled.facts, ndrange, modelled.scalars, boxes)
    assert found is not None
    weights = np.zeros(kernel.work_groups)
    weights[is_active] = np.array(found.weights) / np.mean(found.weights)
    spread = float(weights[is_active].std())
    return spread < EVEN, tuple(float(one) for one in weights)


def _weigh_by_counters(kernel: SimulatedKernel, ndrange: NDRange) -> tuple[bool, tuple[float, ...]]:
    """Weigh by work-groups spread over the launch: each stands for those around it."""
    chosen = np.array(choose_work_groups(ndrange, COUNTED_GROUPS))
    counted = np.array(kernel.counted, dtype=float)
    mean = counted[chosen].mean()
    if counted[chosen].std() < EVEN * mean:
        return True, (1.0,) * kernel.work_groups
    weights = np.interp(np.arange(kernel.work_groups), chosen, counted[chosen] / mean)
    for run in (one for multiple in (2, 4) for one in kernel.list_windows(multiple)):
        step = run.work_groups // COUNTED_IN_WINDOW
        own = counted[run.begin : run.end : step].mean() / mean
        weights[run.begin : run.end] *= own / weights[run.begin : run.end].mean()
    return False, tuple(float(one) for one in weights)


def _locate(number: int, counts: Sequence[int]) -> tuple[int, ...]:
    place = []
    for count in counts:
        place.append(int(number) % count)
        number = int(number) // count
    return tuple(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was sampled, reduced to a line.

    Parameters
    ----------
    cycles : float
        Of the longest launch.
    work : float
        Its work-groups of mean work.
    rate : float
        Cycles per work-group of mean work.
    run : SimulatedRun
        The longest launch.
    cost_p_sat : float
        What ran in all, warm-ups and counted work-groups with it, in P_sat.
    """

    cycles: float
    work: float
    rate: float
    run: SimulatedRun
    cost_p_sat: float

    def reach(self, total: float) -> float:
        """Read the line at the whole launch."""
        return two_point(self.cycles - self.rate * self.work, self.cycles, 0.0, self.work, total)


def sample_first(case: Case, short: int, long: int) -> Sample:
    """Launch the first work-groups twice, as the paper does."""
    a, b = case.first(short), case.first(long)
    rate = (b.cycles - a.cycles) / (b.work_groups - a.work_groups)
    return Sample(
        cycles=b.cycles,
        work=b.work_groups,
        rate=rate,
        run=b,
        cost_p_sat=short + long + case.counting_p_sat,
    )


def sample_timeline(case: Case, multiple: int) -> Sample:
    """Launch the first work-groups once and note when they end.

    The slope leaves out the first wave and a half, which begins in step, and the last half, in
    which nothing follows.
    """
    run, unit = case.first(multiple), case.unit
    begin, end = 1.5 * unit, (multiple - 0.5) * unit
    rate = (run.cycle_at(end) - run.cycle_at(begin)) / (end - begin)
    return Sample(
        cycles=run.cycles,
        work=run.work_groups,
        rate=rate,
        run=run,
        cost_p_sat=multiple + case.counting_p_sat,
    )


def sample_windows(case: Case, *, is_weighed: bool) -> Sample | None:
    """Launch 2 and 4 P_sat behind a warm-up of their own, at every place; the line of the means.

    Returns
    -------
    Sample or None
        None where no windows were simulated. Weighed, work-groups count by their work.
    """
    short, long = case.kernel.list_windows(2), case.kernel.list_windows(4)
    if not short or not long:
        return None
    cycles = [float(np.mean([one.cycles for one in runs])) for runs in (short, long)]
    work = [
        float(np.mean([case.work_of(one) if is_weighed else one.work_groups for one in runs]))
        for runs in (short, long)
    ]
    return Sample(
        cycles=cycles[1], work=work[1], rate=(cycles[1] - cycles[0]) / (work[1] - work[0]),
        run=long[0], cost_p_sat=3 * len(short) + 5 * len(long),
    )  # fmt: skip


def sample_typical(case: Case) -> Sample:
    """Launch 2 and 4 P_sat behind a warm-up of their own where the work is nearest to the mean."""
    pairs = list(zip(case.kernel.list_windows(2), case.kernel.list_windows(4), strict=False))
    mean = sum(case.work) / sum(1 for one in case.work if one)

    def distance(pair: tuple[SimulatedRun, SimulatedRun]) -> float:
        return abs(math.log(max(case.work_of(pair[1]), 1e-9) / (mean * pair[1].work_groups)))

    a, b = min(pairs, key=distance)
    rate = (b.cycles - a.cycles) / (case.work_of(b) - case.work_of(a))
    more = 2 * COUNTED_IN_WINDOW / case.unit if case.kernel.counted else 0.0
    return Sample(
        cycles=b.cycles, work=case.work_of(b), rate=rate, run=b,
        cost_p_sat=8 + case.counting_p_sat + more,
    )  # fmt: skip


def find_roof(case: Case, cases: Sequence[Case]) -> DramRoof:
    """Give the bandwidths that two microbenchmarks measure: none of them is the kernel itself."""
    return DramRoof(
        load_bytes_per_s=_measure(case, cases, ("small/hist_l", "reductions/extremes_atomic")),
        copy_bytes_per_s=_measure(case, cases, ("small/triad", "small/vecadd")),
    )


def _measure(case: Case, cases: Sequence[Case], names: Sequence[str]) -> float:
    """Give the bandwidth of the first kernel that is another one, in bytes per cycle."""
    [name] = [one for one in names if one != case.kernel.name][:1]
    [whole] = [one.whole for one in cases if one.kernel.name == name]
    sectors = whole.counters["dram_read_sectors"] + whole.counters["dram_written_sectors"]
    return SECTOR_BYTES * sectors / whole.cycles


def correct(case: Case, sample: Sample, cases: Sequence[Case]) -> VolumeCorrection:
    """Correct a sample by volumes."""
    return correct_by_volumes(
        sample.cycles, sample.rate, sampled=sample.work, total=case.total,
        volumes=case.volumes, roof=find_roof(case, cases),
    )  # fmt: skip
