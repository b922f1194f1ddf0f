"""Loops that somebody typed as a launch on a GPU: what its caches keep of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.loop_nest import NestLoop
from kernelcast.features.written_accesses.arrays import WrittenArray
from kernelcast.features.written_accesses.kernel import WrittenKernel
from kernelcast.lab.written_nest import FieldError, WrittenNest
from kernelcast.launches.modelling.access_file import WrittenLaunch
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.sources import use_written
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import MemorySpace

_ROWS = {"x": "in the same row", "y": "in rows before", "z": "in layers before"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveShare:
    """What a wave of work-groups shares with those before it: a layer condition of the L2 cache."""

    others: str
    """Where the others lie."""
    work_groups_back: int
    """How many work-groups before, about."""
    shared_bytes: float
    """Loads of a wave that they have loaded as well."""
    oversubscription: float
    """Bytes touched in between over the capacity of the cache; the condition holds below 1."""
    hit_rate: float
    """Part that is still there."""


def model_nest_on_gpu(
    written: WrittenNest,
    constants: Mapping[str, int],
    machine: MachineDescription,
    local_size: tuple[int, ...],
) -> tuple[dict[str, float], tuple[WaveShare, ...], tuple[str, ...]]:
    """Model a nest as a launch with a work-item per iteration.

    Returns
    -------
    volumes : dict of str to float
        Bytes per work-item by boundary.
    shares : tuple of WaveShare
        Layer conditions of the L2 cache.
    notes : tuple of str
        What was assumed.
    """
    ndrange = _read_space(written.nest.loops, constants)
    dimensions = ndrange.dimensions
    size = (*local_size, *(1,) * MAX_DIMENSIONS)[:dimensions]
    kernel = _write_kernel(written, constants)
    source = use_written(WrittenLaunch(kernel=kernel, ndrange=ndrange))
    found = configure(source, machine, size)
    shares = tuple(
        WaveShare(
            others=_ROWS.get(one.name, one.name),
            work_groups_back=one.work_groups,
            shared_bytes=one.shared_bytes,
            oversubscription=one.oversubscription,
            hit_rate=one.hit_rate,
        )
        for one in found.volumes.wave.overlaps
    )
    volumes = {
        name.replace("_to_", " to "): volume / found.updates
        for name, volume in found.estimate.volumes.items()
    }
    return volumes, shares, found.estimate.notes


def _read_space(loops: tuple[NestLoop, ...], constants: Mapping[str, int]) -> NDRange:
    """Take loops for an index space, the innermost one for dimension 0."""
    if len(loops) > MAX_DIMENSIONS:
        message = (
            f"{len(loops)} loops; on a GPU give at most {MAX_DIMENSIONS}, one per dimension of the "
            "index space"
        )
        raise FieldError(name="loops", message=message)
    values = bind_names(constants)
    sizes, starts = [], []
    for loop in reversed(loops):
        bounds = (loop.start, loop.stop)
        if loop.step != 1 or not all(one.is_parameter for one in bounds):
            raise FieldError(
                name="loops",
                message=f"{loop.name}: on a GPU a loop has the step 1 and bounds of constants",
            )
        start, stop = (int(one.evaluate(values)) for one in bounds)
        if start < 0 or stop <= start:
            raise FieldError(
                name="loops", message=f"{loop.name}: range({start}, {stop}) has no work-items"
            )
        sizes.append(stop - start)
        starts.append(start)
    return NDRange(global_size=tuple(sizes), global_offset=tuple(starts))


def _write_kernel(written: WrittenNest, constants: Mapping[str, int]) -> WrittenKernel:
    nest = written.nest
    ids: dict[Symbol, Expr] = {
        Symbol(SymbolKind.LOOP, loop.name): Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis))
        for axis, loop in enumerate(reversed(nest.loops))
    }
    arrays = tuple(
        WrittenArray(name=one.name, element=written.types[one.name]) for one in nest.arrays
    )
    return WrittenKernel(
        name=nest.name,
        arrays=arrays,
        accesses=tuple(_list_accesses(written, ids)),
        scalars=dict(constants),
    )


def _list_accesses(written: WrittenNest, ids: Mapping[Symbol, Expr]) -> Iterator[MemoryAccess]:
    for site, one in enumerate(written.nest.accesses):
        yield MemoryAccess(
            site=site, block=site, line=one.line, text=one.text,
            kind=AccessKind.STORE if one.is_store else AccessKind.LOAD,
            space=MemorySpace.GLOBAL, buffer=one.array, bytes=one.bytes,
            offset_bytes=one.offset_bytes.substitute(ids),
            pattern=AddressPattern.QUASI_AFFINE,
        )  # fmt: skip
