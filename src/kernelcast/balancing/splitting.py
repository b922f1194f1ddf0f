"""Chooses the dimension in which a launch is cut, by what address expressions prove."""

import math
from functools import lru_cache

from kernelcast.balancing.settings import BalanceSettings
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.features.write_safety import SplitSafety, assess_split
from kernelcast.launches.source_check import refuse_overruns
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.balance import SlabSpace
from kernelcast.records.errors import InputError, SignatureError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

_ENOUGH_LAYERS = 16


@lru_cache(maxsize=64)
def choose_split(problem: Problem, settings: BalanceSettings, *, unit: int = 1) -> SplitSafety:
    """Choose how to cut a launch."""
    facts = analyse(problem.kernel).facts
    if len(facts.parameters) != len(problem.arguments):
        msg = (
            f"kernel {problem.kernel.name}: {len(problem.arguments)} arguments given, "
            f"{len(facts.parameters)} expected"
        )
        raise SignatureError(msg)
    refuse_overruns(problem.kernel, problem.ndrange, problem.arguments)
    sizes = {
        parameter.name: argument.bytes
        for parameter, argument in zip(facts.parameters, problem.arguments, strict=True)
        if isinstance(argument, BufferArgument)
    }
    scalars = bind_scalars(facts, problem.arguments)
    found: list[SplitSafety] = []
    for axis in _order_axes(problem.ndrange):
        space = cut_axis(problem.ndrange, axis, settings.most_slabs, unit)
        one = assess_split(
            facts, space, scalars, sizes, assumes_independence=settings.assumes_independence
        )
        if one.is_proven:
            return one
        found.append(one)
    allowed = [one for one in found if not one.refusals]
    if not allowed:
        reasons = "; ".join(found[0].refusals[:3])
        msg = (
            f"kernel {problem.kernel.name} is not split over devices: {reasons}. Run it on one "
            "device, or vouch that no work-group reads what another one writes (--independent)"
        )
        raise InputError(msg)
    return allowed[0]


def cut_axis(ndrange: NDRange, axis: int, most_slabs: int, unit: int = 1) -> SlabSpace:
    """Cut a dimension into slabs."""
    layers = ndrange.group_counts[axis]
    per_layer = ndrange.work_group_count // layers
    thickness = -(-layers // most_slabs)
    step = unit // math.gcd(unit, per_layer)
    rounded = -(-thickness // step) * step
    # A small index space is rather cut finely than into multiples.
    if layers // rounded >= min(_ENOUGH_LAYERS, layers):
        thickness = rounded
    return SlabSpace(ndrange=ndrange, axis=axis, thickness=thickness)


def _order_axes(ndrange: NDRange) -> list[int]:
    """Order dimensions: those with enough work-groups, slowest first, then by their number."""
    counts = ndrange.group_counts
    slowest_first = list(range(ndrange.dimensions))[::-1]
    enough = [axis for axis in slowest_first if counts[axis] >= _ENOUGH_LAYERS]
    others = sorted(set(slowest_first) - set(enough), key=lambda axis: -counts[axis])
    return [axis for axis in (*enough, *others) if counts[axis] > 1] or [0]
