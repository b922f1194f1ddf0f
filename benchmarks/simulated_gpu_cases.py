"""What `simulated_gpu.py` knows of a kernel before it samples, its estimates, and what it learns.

Nothing here is chosen by the times of whole launches. A kernel's volumes come from its source, or
from the counters of its sample where addresses depend on data; the work of its work-groups from
its source, or from software counters of a few. Bandwidths are those of two other kernels: what
microbenchmarks would measure.

An L2 cache that writes back keeps what is stored until room is needed. The first work-groups of a
launch find room; all others pay for DRAM writes of those before them. So a sample of few
work-groups is too fast where DRAM bandwidth is the limit, and the more stores a kernel does.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.machine import GpuMachine, read_machine, time_stream
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.features.counting.static import choose_work_groups
from kernelcast.features.counting.work_profile import profile_work
from kernelcast.features.touched_ranges import find_active_box
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.launches import ModelledKernel, model_kernel
from kernelcast.models.linear import two_point
from kernelcast.models.time_models import TimeModel
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.training_table import TrainingTable, make_table
from support.simulated_gpu import (
    CLOCK_HZ,
    SECTOR_BYTES,
    SimulatedKernel,
    SimulatedRun,
    make_problem,
)

DEVICE = "SM7_QV100/5/2"
# As of launches/weighing.py: below this spread of the work weights change nothing.
EVEN = 0.05
COUNTED_GROUPS = 32
COUNTED_IN_WINDOW = 8
GROUPS = ("sampled", "counters", "analytic")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    """Volumes between L2 cache and DRAM as a launch of even work-groups goes on.

    Examples
    --------
    >>> copy = WriteBack(l2_bytes=600, loaded_bytes=10, stored_bytes=10, allocated_bytes=20)
    >>> copy.clean_work_groups
    30.0
    >>> copy.count_written_bytes(20), copy.count_written_bytes(100)
    (0.0, 700.0)
    """

    l2_bytes: float
    """Capacity of the cache."""
    loaded_bytes: float
    stored_bytes: float
    """What a work-group loads from DRAM, and what of its stores DRAM gets in the end."""
    allocated_bytes: float
    """What a work-group newly occupies in the cache: loads, and stores to other places."""
    is_clean: bool = True
    """Whether the cache holds nothing at the beginning that has to be written back."""

    @property
    def clean_work_groups(self) -> float:
        """Work-groups that fill the cache; from then on each evicts what another one stored."""
        if not self.is_clean or not self.allocated_bytes > 0:
            return 0.0
        return self.l2_bytes / self.allocated_bytes

    def count_written_bytes(self, work_groups: float) -> float:
        """Give what is written back while so many work-groups run from the beginning."""
        return self.stored_bytes * max(0.0, work_groups - self.clean_work_groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeCorrection:
    """The time of a whole launch with what its samples did not have to write back."""

    seconds: float
    """Of the whole launch."""
    rate_s: float
    """Per work-group beyond the samples."""
    dram_s: float
    """Least time per work-group for the DRAM volumes there."""
    loaded_bytes: float
    written_bytes: float
    """These volumes, per work-group."""


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
        """Return the launch of the first work-groups, of so many P_sat."""
        return self.kernel.require(0, multiple * self.unit, self.whole.warmed_by)

    def work_of(self, run: SimulatedRun) -> float:
        """Return a run's work in work-groups of mean work."""
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
    """Return the V100 of the shipped description, cut down as the simulator's was."""
    whole = read_machine(find_machine("v100"))
    return replace(
        whole, compute_units=5, l2_bytes=384 << 10, l2_units=5, dram_fetch_bytes=SECTOR_BYTES
    )


def make_checked_problem(kernel: SimulatedKernel, cache_folder: Path) -> Problem:
    """Return the problem, with the index space that was simulated."""
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
    """Return volumes per work-group, and whether the source told them."""
    allocated = SECTOR_BYTES * first.count_per_work_group("l2_misses")
    loaded = SECTOR_BYTES * first.count_per_work_group("dram_read_sectors")
    try:
        modelled.registers = kernel.registers
        found = compute_volumes(modelled.launch(ndrange.local_size), machine)
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


def find_rates(case: Case, cases: Sequence[Case]) -> tuple[float, float]:
    """Find the rates of loads and copies by two microbenchmarks: none of them the kernel itself."""

    def measure(*names: str) -> float:
        name = next(one for one in names if one != case.kernel.name)
        [whole] = [one.whole for one in cases if one.kernel.name == name]
        sectors = whole.counters["dram_read_sectors"] + whole.counters["dram_written_sectors"]
        return SECTOR_BYTES * sectors / whole.cycles

    return (
        measure("small/hist_l", "reductions/extremes_atomic"),
        measure("small/triad", "small/vecadd"),
    )


def correct(case: Case, sample: Sample, cases: Sequence[Case]) -> VolumeCorrection:
    """Extrapolate a sample by its rate, but no faster than DRAM takes what is written back."""
    volumes, left = case.volumes, case.total - sample.work
    late = volumes.count_written_bytes(case.total) - volumes.count_written_bytes(sample.work)
    written = late / left if left > 0 else 0.0
    least_s = time_stream(volumes.loaded_bytes, written, *find_rates(case, cases))
    chosen_s = max(sample.rate, least_s) if volumes.stored_bytes > 0 else sample.rate
    return VolumeCorrection(
        seconds=sample.cycles + chosen_s * left, rate_s=chosen_s, dram_s=least_s,
        loaded_bytes=volumes.loaded_bytes, written_bytes=written,
    )  # fmt: skip


def describe(case: Case, sample: Sample, cases: Sequence[Case]) -> Mapping[str, float]:
    """Give what a model is told of a sample: its timeline, counters and volumes.

    Times are in units of what one P_sat of mean work-groups takes, counts per cycle.
    """
    corrected = correct(case, sample, cases)
    run, unit = sample.run, case.unit
    wave = corrected.rate_s * unit
    cycles = corrected.rate_s * sample.work
    units = case.kernel.gpu.compute_units
    counted = run.counters
    moved = corrected.loaded_bytes + corrected.written_bytes
    return {
        "sampled.intercept_ratio": (sample.cycles - cycles) / wave,
        "sampled.first_end_ratio": run.cycle_at(unit / 4) / wave,
        "sampled.wave_spread_ratio": (run.cycle_at(unit) - run.cycle_at(unit / 4)) / wave,
        "sampled.tail_ratio": (run.cycles - run.cycle_at(run.work_groups - unit / 2)) / wave,
        "counters.issue_ratio": counted["warp_instructions"] / cycles / units,
        "counters.l1_accesses_ratio": counted["l1_accesses"] / cycles / units,
        "counters.l2_accesses_ratio": counted["l2_accesses"] / cycles,
        "counters.l2_hit_ratio": 1 - counted["l2_misses"] / max(1, counted["l2_accesses"]),
        "analytic.dram_share_ratio": corrected.dram_s / corrected.rate_s,
        "analytic.write_share_ratio": corrected.written_bytes / moved if moved else 0.0,
        "analytic.correction_ratio": corrected.rate_s / sample.rate,
    }


def make_rows(
    cases: Sequence[Case], samples: Sequence[Sample], *, is_corrected: bool
) -> TrainingTable:
    """Make a table of all kernels: features, the time to correct, and the true one."""
    features = [describe(*pair, cases) for pair in zip(cases, samples, strict=True)]
    schema = FeatureSchema(names=tuple(features[0]), version=1)
    linear = [
        correct(case, sample, cases).seconds if is_corrected else sample.reach(case.total)
        for case, sample in zip(cases, samples, strict=True)
    ]
    return make_table(
        schema,
        [list(one.values()) for one in features],
        {
            "keys": [case.kernel.name for case in cases],
            "kernels": [case.kernel.name for case in cases],
            "seconds": [case.whole.cycles / CLOCK_HZ for case in cases],
            "linear_s": np.array(linear) / CLOCK_HZ,
        },
    )


def predict_left_out(
    table: TrainingTable, *, is_gated: bool, learner: str = "svr"
) -> npt.NDArray[np.float64]:
    """Predict each kernel by a model that learned from all others, in seconds.

    Settings and gate are chosen within the others.
    """
    model = TimeModel(name=learner, learner=learner, feature_groups=GROUPS, is_gated=is_gated)
    found = np.empty(len(table))
    for kernel in sorted(set(table.kernels)):
        is_left_out = table.kernels == kernel
        fitted = model.fit(table.take(~is_left_out))
        found[is_left_out] = fitted.forecast(table.take(is_left_out))[0]
    return found
