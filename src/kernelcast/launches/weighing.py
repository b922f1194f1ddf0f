"""Samples and weighs work-groups by what the source says of their work.

Where the source proves that all work-groups do the same, no samples are spent to find out: what
differs is the machine's noise.

A sample of uneven work is a gamble on which places it hits. Where the source tells how work-groups
differ (triangular loops, causal attention), those are sampled that do about the mean work, and each
launch is weighed by the instructions of its work-groups over those of the mean work-group: the rest
is a sample of even work. Where it tells together with what a buffer holds (the rows of a sparse
matrix, the edges of a graph), launches all over are weighed so.

Samples have the last word: weights that do not make their rates agree better are not used, for a
kernel bound by memory does not follow its instructions.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import compress

import numpy as np

from kernelcast.features.analysis import read_facts, remember_by_code
from kernelcast.features.counting.static import Numbers, bind_scalars, find_index_buffers
from kernelcast.features.counting.work_profile import WorkProfile, may_differ, profile_work
from kernelcast.features.touched_ranges import find_active_box
from kernelcast.launches.machines import find_own_machine, find_stand_in
from kernelcast.launches.source_check import refuse_persistent
from kernelcast.records.arguments import BufferArgument, HeldBuffer, Init
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.sampler import PreparedLaunch, Sampler, is_even
from kernelcast.sampling.warmed_windows import WarmedSampler, open_sampler

# Below this spread of the work, weights change nothing that samples could show.
_LEAST_SPREAD = 0.05
_FEWEST_LAUNCHES = 3
# Work-groups that do next to nothing still start and end.
_LEAST_WEIGHT = 0.02


def open_by_source(
    launch: PreparedLaunch, plan: SamplingPlan, problem: Problem
) -> tuple[Sampler | WarmedSampler, Callable[[SampleRun], SampleRun]]:
    """Give what samples a launch moment by moment where its source says, and what weighs by that
    what it timed."""
    refuse_persistent(problem.kernel)
    problem = replace(problem, ndrange=launch.ndrange)
    plan = plan_by_source(plan, problem)
    try:
        reads_contents = bool(find_index_buffers(read_facts(problem.kernel)))
    except (InputError, RecursionError):
        reads_contents = True
    find_least = cache(partial(find_least_rate, launch.device, problem))

    def weigh_on_gpu(run: SampleRun) -> SampleRun:
        # Where borders are idle, the others have their weights by now.
        is_weighed = any(one.weight != 1 for one in run.launches)
        weighed = run if is_weighed else weigh_run(run, problem)
        return replace(weighed, least_rate_s=find_least())

    def weigh(run: SampleRun) -> SampleRun:
        # What is the same everywhere would be counted once more to weigh nothing.
        is_even = plan.is_known_even and not plan.places and not reads_contents
        return run if is_even else weigh_run(run, problem, launch.saturation.parts)

    if launch.device.kind is not DeviceKind.GPU:
        return open_sampler(launch, plan), weigh
    return open_sampler(launch, plan, active=find_active_groups(problem)), weigh_on_gpu


def sample_by_source(launch: PreparedLaunch, plan: SamplingPlan, problem: Problem) -> SampleRun:
    """Time a few work-groups in one moment, for the whole of a plan's budget."""
    sampler, weigh = open_by_source(launch, replace(plan, moments=1), problem)
    run = sampler.take_moment()
    assert run is not None, "the first moment of a launch has work-groups"
    return weigh(run)


def plan_by_source(plan: SamplingPlan, problem: Problem) -> SamplingPlan:
    """Plan no search for uneven work where the source tells how work-groups differ, if at all."""
    profile, has_contents = _profile(problem)
    if profile is None or not profile.is_exact:
        return plan
    if profile.spread < _LEAST_SPREAD:
        return replace(plan, is_known_even=True)
    total = problem.ndrange.work_group_count
    if not has_contents:
        return replace(
            plan,
            is_known_even=True,
            places=tuple(one / total for one in profile.typical),
            place_weight=max(profile.typical_weight, _LEAST_WEIGHT),
        )
    # Rows of the mean length are few and lie together; places at equal shares of the work are all
    # over, but not where next to none of it is. Where usual work-groups do most of the work, single
    # heavy ones among them would leave the device's other threads idle.
    if profile.by_work_weight > 2.0:
        places = tuple(one / total for one in profile.by_work)
        plan = replace(plan, places=places, place_weight=profile.by_work_weight)
    return plan


def weigh_boxes(problem: Problem, boxes: Sequence[GroupBox]) -> tuple[float, ...] | None:
    """Count the work of boxes over that of the mean work-group; None where data decide it."""
    profile, _ = _profile(problem, tuple(boxes))
    return profile.weights if profile is not None and profile.is_exact else None


def weigh_run(run: SampleRun, problem: Problem, parts: int = 1) -> SampleRun:
    """Weigh the launches of a sample run, unless the samples contradict the source, and the parts
    that cores of a device get beforehand."""
    boxes = tuple(one.box for one in run.launches)
    profile, _ = _profile(replace(problem, ndrange=run.ndrange), boxes)
    return run if profile is None else apply_profile(run, profile, parts)


def apply_profile(run: SampleRun, profile: WorkProfile, parts: int = 1) -> SampleRun:
    """Put weights on launches, unless the samples contradict them."""
    if profile.spread < _LEAST_SPREAD:
        return run
    candidates = []
    for weights in (profile.weights, *profile.weights_in_step):
        pairs = zip(run.launches, weights, strict=True)
        put_on = (replace(one, weight=max(weight, _LEAST_WEIGHT)) for one, weight in pairs)
        candidates.append(_rescale(tuple(put_on)))
    # The weights that let the samples agree clearly better than those before them.
    weighed = candidates[0]
    for launches in candidates[1:]:
        old, new = _find_rates(weighed), _find_rates(launches)
        # Work-items in step are believed in where samples agree clearly better.
        if len(new) >= _FEWEST_LAUNCHES and _spread(new) < 0.8 * _spread(old):
            weighed = launches
    # One that is mostly the cost of a launch tells nothing of its work-groups.
    tells = [one.duration_s >= 2 * run.launch_overhead_s for one in run.launches]
    compared = _leave_pilot_out([*compress(weighed, tells)])
    used = [one.weight for one in compared]
    # Launches whose weights differ by less than this factor agree as well without them.
    if len(used) < _FEWEST_LAUNCHES or max(used) < 1.25 * min(used):
        agrees = profile.is_exact  # too few to contradict, or too much alike
    else:
        # Rates per unit of work may spread so much, in units of what rates per work-group do: not
        # more where the source knows the work, clearly less where it assumes what data decide.
        most = 1.0 if profile.is_exact else 0.7
        before = _find_rates([*compress(run.launches, tells)])
        agrees = _spread(_find_rates(compared)) <= most * _spread(before)
    if not agrees:
        return run
    # Parts of one window of even work differ by what caches hold, not by their work.
    imbalance = 1.0
    if profile.is_exact and parts > 1:
        imbalance = profile.find_imbalance(parts, run.ndrange.work_group_count)
    return replace(
        run,
        launches=weighed,
        is_even=run.is_even or is_even(_find_rates(weighed)),
        imbalance=imbalance,
    )


def _rescale(launches: tuple[TimedLaunch, ...]) -> tuple[TimedLaunch, ...]:
    """Fit weights to a line of seconds over counted work: an `exp` counts as one instruction."""
    used = _leave_pilot_out(launches)
    counted = np.array([one.weight for one in used])
    middle = np.sqrt(counted.min() * counted.max())
    heavy = np.count_nonzero(counted > middle)
    # Counted work is corrected where it differs threefold, and two launches are of either kind; the
    # corrected one must agree clearly better.
    is_wide = counted.max() >= 3.0 * counted.min()
    if not is_wide or min(heavy, len(used) - heavy) < 2:
        return launches
    seconds = np.array([one.duration_s / one.box.work_group_count for one in used])
    columns = np.column_stack([1 / seconds, counted / seconds])  # relative errors count
    (level, slope), *_ = np.linalg.lstsq(columns, np.ones(len(used)), rcond=None)
    lightest = level + slope * min(one.weight for one in launches)
    if slope <= 0 or lightest <= 0 or level + slope <= 0:
        return launches
    line = (level + slope * counted) / (level + slope)
    if _spread(seconds / line) > 0.7 * _spread(seconds / counted):
        return launches
    return tuple(
        replace(one, weight=max(float(level + slope * one.weight) / (level + slope), _LEAST_WEIGHT))
        for one in launches
    )


def _profile(problem: Problem, boxes: tuple[GroupBox, ...] = ()) -> tuple[WorkProfile | None, bool]:
    """Count the work of a launch, and of boxes, by the source and by contents that loops or
    conditions read, and tell whether there are any. None where that is not known, or boxes do the
    same."""
    kernel, ndrange, arguments = problem.kernel, problem.ndrange, problem.arguments
    try:
        facts = read_facts(kernel)
        wanted = find_index_buffers(facts)
        held = {
            parameter.name: argument
            for parameter, argument in zip(facts.parameters, arguments, strict=False)
            if parameter.name in wanted
            and isinstance(argument, BufferArgument)
            and (
                argument.read is not None
                if isinstance(argument, HeldBuffer)
                else argument.init is Init.FILE
            )
        }
        if held and (informed := read_facts(kernel, frozenset(held))).contents:
            facts = informed
        asked = {one.buffer for one in facts.contents}
        contents = {name: _open_content(one) for name, one in held.items() if name in asked}
        scalars, is_alike = bind_scalars(facts, arguments), bool(boxes) and not may_differ(facts)
        if not contents and (is_alike or not boxes):
            whole = _profile_launch(kernel, ndrange, tuple(sorted(scalars.items())))
            # Work-groups may differ by a border of global ids alone, but many of them: a plan has
            # then chosen places by their work, and those would stand for all without weights.
            is_alike = whole is None or not whole.is_exact or whole.spread < _LEAST_SPREAD
            if not boxes:
                return whole, False
        if boxes and is_alike:
            return None, bool(contents)
        return profile_work(facts, ndrange, scalars, boxes, contents), bool(contents)
    except Exception:  # noqa: BLE001 - a help: nothing about it may cost the answer
        return None, False


@remember_by_code(256)
def _profile_launch(
    kernel: Kernel, ndrange: NDRange, scalars: tuple[tuple[str, int], ...]
) -> WorkProfile | None:
    return profile_work(read_facts(kernel), ndrange, dict(scalars), ())


def _open_content(argument: BufferArgument) -> Numbers:
    """Open what a buffer holds; of a file only what is looked at is read."""
    if isinstance(argument, HeldBuffer) and argument.read is not None:
        return argument.read()
    if argument.data is not None:
        return np.frombuffer(argument.data, argument.element.dtype)
    content: Numbers = np.load(str(argument.path), mmap_mode="r", allow_pickle=False)
    return content


def find_active_groups(problem: Problem) -> GroupBox | None:
    """Find the work-groups that do anything; None where that is not known, or none does."""
    try:
        facts = read_facts(problem.kernel)
        return find_active_box(facts, problem.ndrange, bind_scalars(facts, problem.arguments))
    except Exception:  # noqa: BLE001 - a help: nothing about it may cost the answer
        return None


def find_least_rate(device: DeviceDescription, problem: Problem) -> float:
    """Find the least seconds per work-group by what the whole launch moves through DRAM, as the
    description of its device has it; 0 where that is not known."""
    try:
        machine = find_own_machine(device.id) or find_stand_in(device)
        if machine is None:
            return 0.0
        # The models take longer to import than samples to take.
        from kernelcast.analytic.gpu.machine import read_machine, time_stream
        from kernelcast.analytic.gpu.volumes import compute_volumes
        from kernelcast.launches.modelling.launches import model_launch

        modelled = model_launch(problem)
        gpu = read_machine(machine)
        load, copy = gpu.dram_load_bytes_per_s, gpu.dram_copy_bytes_per_s
        if load is None or copy is None or not all(one.guard.is_exact for one in modelled.accesses):
            return 0.0
        volumes = compute_volumes(modelled, gpu)
        loaded, stored = volumes.dram_load_bytes, volumes.dram_store_bytes
        if not stored > 0 or loaded + stored < max(gpu.l2_total_bytes, gpu.l3_bytes):
            return 0.0
        return time_stream(loaded, stored, load, copy) / volumes.work_groups
    except Exception:  # noqa: BLE001 - a help: nothing about it may cost the answer
        return 0.0


def _leave_pilot_out(launches: Sequence[TimedLaunch]) -> Sequence[TimedLaunch]:
    """Leave out launches that only served to find sizes, where there are others."""
    return [one for one in launches if one.window != PILOT_WINDOW] or launches


def _find_rates(launches: Sequence[TimedLaunch]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Give seconds per unit of work."""
    return np.array([one.duration_s / one.mean_work_groups for one in _leave_pilot_out(launches)])


def _spread(rates: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(rates.std() / rates.mean())
