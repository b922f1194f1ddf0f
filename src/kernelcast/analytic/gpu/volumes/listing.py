"""Lists the addresses of single work-groups: by evaluation, or from a recording."""

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.gpu.volumes.unions import IntArray
from kernelcast.analytic.gpu.volumes.warps import ABSENT
from kernelcast.expressions import EvaluationError, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import LoopFacts, MemoryAccess
from kernelcast.expressions.axes import bind_names, list_axes
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import InputError

_PLACES = (1 / 6, 1 / 2, 5 / 6)
_ITERATIONS = 256
"""Iterations of all loops together that are listed; more are extrapolated."""


def evaluate_groups(
    access: MemoryAccess, launch: ModelledLaunch, width: int
) -> tuple[dict[int, IntArray], dict[int, float]]:
    """Evaluate an address for pairs of neighbouring work-groups at three places of the grid.

    Parameters
    ----------
    access : MemoryAccess
        With a known offset.
    width : int
        Work-items of a warp.

    Returns
    -------
    groups : dict of int to ndarray of int64, shape (instructions, width)
        Addresses by work-group; work-groups that do not execute it hold no instructions.
    repeats : dict of int to float
        Executions that each listed one stands for.

    Raises
    ------
    InputError
        If a symbol has no value.
    """
    count = launch.ndrange.work_group_count
    chosen = {min(count - 1, int(place * count) + by) for place in _PLACES for by in (0, 1)}
    groups: dict[int, IntArray] = {}
    repeats: dict[int, float] = {}
    for group in sorted(chosen):
        try:
            groups[group], repeats[group] = _evaluate(access, launch, group, width)
        except EvaluationError as error:
            name = access.text or access.buffer or "an access"
            msg = f"{launch.kernel}, line {access.line}: address of {name}: {error}"
            raise InputError(msg) from error
    return (groups, repeats) if any(one.size for one in groups.values()) else ({}, {})


def read_recorded(access: MemoryAccess, launch: ModelledLaunch, width: int) -> dict[int, IntArray]:
    """Sort the recorded addresses of an access into warp instructions.

    Parameters
    ----------
    access : MemoryAccess
        Its `site` was recorded.
    launch : ModelledLaunch
        With `recorded` addresses, or without.
    width : int
        Work-items of a warp.

    Returns
    -------
    dict of int to ndarray of int64, shape (instructions, width)
        Addresses by work-group; empty if nothing was recorded.
    """
    recorded = launch.recorded
    if recorded is None or not (recorded.sites == access.site).any():
        return {}
    own = recorded.sites == access.site
    shift = launch.alignments.get(access.buffer or "", 0)
    groups, items = recorded.groups[own], recorded.local_ids[own]
    keys = np.stack([groups, recorded.sequences[own], items // width])
    different, row = np.unique(keys, axis=1, return_inverse=True)
    table = np.full((different.shape[1], width), ABSENT, dtype=np.int64)
    table[row.ravel(), items % width] = recorded.offsets_bytes[own] + shift
    found = {group: table[different[0] == group] for group in np.unique(groups).tolist()}
    nothing = np.zeros((0, width), dtype=np.int64)
    return {group: found.get(group, nothing) for group in recorded.work_groups}


def _evaluate(
    access: MemoryAccess, launch: ModelledLaunch, group: int, width: int
) -> tuple[IntArray, float]:
    bound, size = _bind(launch, group)
    active = np.ones((size, 1), dtype=np.bool_)
    shares = 1.0
    columns = 1
    for loop in access.loops:
        bound, active, share = _unroll(loop, bound, active, max(1, _ITERATIONS // columns))
        shares *= share
        columns = active.shape[1]
    assert access.offset_bytes is not None
    offsets = np.asarray(access.offset_bytes.evaluate(bound)) + launch.alignments.get(
        access.buffer or "", 0
    )
    met = np.logical_and(active, access.guard.evaluate(bound))
    offsets, met = np.broadcast_arrays(offsets, met)
    whole = -(-size // width) * width
    table = np.full((whole, met.shape[1]), ABSENT, dtype=np.int64)
    table[:size] = np.where(met, offsets, ABSENT)
    rows = table.reshape(-1, width, met.shape[1]).transpose(0, 2, 1).reshape(-1, width)
    return rows[(rows != ABSENT).any(axis=1)], shares


def _unroll(
    loop: LoopFacts,
    bound: Mapping[Symbol, Value],
    active: npt.NDArray[np.bool_],
    most: int,
) -> tuple[dict[Symbol, Value], npt.NDArray[np.bool_], float]:
    """Add a loop's iterations as columns; the last factor says how many each listed one means."""
    trips = most
    if loop.trip_count is not None:
        trips = max(1, int(np.max(np.where(active, loop.trip_count.evaluate(bound), 0))))
    listed = min(trips, most)
    numbers = np.tile(np.arange(listed, dtype=np.int64), active.shape[1])[None, :]
    wide: dict[Symbol, Value] = {
        symbol: np.repeat(value, listed, axis=1)
        if isinstance(value, np.ndarray) and value.shape[1] > 1
        else value
        for symbol, value in bound.items()
    }
    wide[Symbol(SymbolKind.LOOP, loop.name)] = numbers
    runs = np.logical_and(np.repeat(active, listed, axis=1), loop.condition.evaluate(wide))
    return wide, runs, trips / listed


def _bind(launch: ModelledLaunch, group: int) -> tuple[dict[Symbol, Value], int]:
    """Give the values of all symbols for the work-items of a work-group, and their number."""
    axes = list_axes(launch.ndrange)
    places = []
    for axis in axes:
        places.append(group % axis.groups)
        group //= axis.groups
    sizes = [
        min(axis.local, axis.items - place * axis.local)
        for axis, place in zip(axes, places, strict=True)
    ]
    count = prod(sizes)
    items = np.arange(count, dtype=np.int64)[:, None]
    bound: dict[Symbol, Value] = {**bind_names(launch.scalars)}
    for axis, place, size in zip(axes, places, sizes, strict=True):
        bound |= axis.bind(place, items % size, size)
        items = items // size
    return bound, count
