"""Says where a nest or a machine is not what layer conditions assume."""

from collections import Counter
from collections.abc import Sequence

from kernelcast.analytic.cpu.caches import CpuCache
from kernelcast.analytic.cpu.layer_conditions.affine import AffineAccess
from kernelcast.analytic.cpu.layer_conditions.bound import BoundAccess, BoundNest
from kernelcast.analytic.cpu.layer_conditions.streams import is_sequential
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest


def note_nest(nest: LoopNest, accesses: Sequence[AffineAccess]) -> tuple[str, ...]:
    """Collect what was assumed of a nest, whatever its sizes are."""
    still = dict.fromkeys(one.access.array for one in accesses if one.strides[-1].is_zero)
    changing = [loop.name for loop in nest.loops if not (loop.stop - loop.start).is_parameter]
    return (
        *nest.notes,
        *note_decisions(nest),
        *(
            f"{array}: the innermost loop does not move it; its few lines are not counted"
            for array in still
        ),
        *(
            f"loop over {name}: its length changes; reuse is that of a middle iteration"
            for name in changing
        ),
    )


def note_decisions(nest: LoopNest) -> tuple[str, ...]:
    """Say how often conditions on data are taken to hold."""
    if not nest.decisions:
        return ()
    asked = "; ".join(one.name for one in nest.decisions)
    taken = "both sides are executed, under a mask"
    if nest.taken is not None:
        taken = f"they are taken to hold in {100 * nest.taken:g} % of the iterations, at random"
    return (f"conditions on data ({asked}): {taken}",)


def note_order(nest: LoopNest, bound: BoundNest) -> tuple[str, ...]:
    """Name the arrays that the loops do not pass in the order of memory."""
    jumping = dict.fromkeys(
        one.array for one in bound.accesses if one.strides[-1] and not is_sequential(one.strides)
    )
    order = ", ".join(loop.name for loop in nest.loops)
    return tuple(
        f"{array}: the loops ({order}) do not pass it in the order of its memory; reuse is "
        "estimated per line, the simulator sees it exactly"
        for array in jumping
    )


def note_victims(machine: CpuMachine) -> tuple[str, ...]:
    """Name the victim caches that are judged as if they were alone."""
    return tuple(
        f"{cache.name} is a victim cache: it is judged by its own size, without lines that only "
        "the nearer cache holds"
        for cache in machine.caches
        if cache.is_victim
    )


def note_conflicts(accesses: Sequence[BoundAccess], caches: Sequence[CpuCache]) -> tuple[str, ...]:
    """Name arrays of which one iteration needs more lines in one set than a cache has ways.

    Layer conditions take a cache for one set; such sizes thrash where they see no danger.
    """
    moving = [one for one in accesses if one.strides[-1]]
    notes = []
    for cache in caches:
        for array in dict.fromkeys(one.array for one in moving):
            lines = {one.offset // cache.line_bytes for one in moving if one.array == array}
            crowd = max(Counter(line % cache.sets for line in lines).values())
            if crowd > cache.ways:
                notes.append(
                    f"{array}: {crowd} of its lines at a time fall into one set of {cache.name}, "
                    f"which holds {cache.ways}; pad the rows, or simulate"
                )
    return tuple(notes)
