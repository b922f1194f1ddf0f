"""Takes kernels over from pystencils, a code generator; it is an optional dependency."""

import importlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kernelcast.expressions.accesses import AccessKind
from kernelcast.features.written_accesses import WrittenKernel, read_access, read_array
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange


def read_assignments(
    assignments: Any,  # noqa: ANN401 - pystencils has no type information
    *,
    name: str = "stencil",
    sizes: Sequence[int] = (),
    ghost_layers: int | None = None,
    local_size: Sequence[int] | None = None,
) -> tuple[WrittenKernel, NDRange]:
    """Read what the assignments of a pystencils kernel touch.

    Parameters
    ----------
    assignments : pystencils.AssignmentCollection or iterable of pystencils.Assignment
        The update of one cell.
    name : str
        Name of the kernel, for messages and tables.
    sizes : sequence of int
        Cells per spatial dimension, ghost layers included, of fields whose size is variable.
    ghost_layers : int, optional
        Cells at each border that are not updated; as many as the assignments reach when left out.
    local_size : sequence of int, optional
        Work-items per work-group, the contiguous dimension first.

    Returns
    -------
    (WrittenKernel, NDRange)
        One work-item per updated cell. Dimension 0 is the spatial dimension with the smallest
        stride, as pystencils itself lays out its GPU kernels. Each distinct load is counted once.

    Raises
    ------
    InputError
        If pystencils is not installed, sizes are missing, or an access is not affine.
    """
    try:
        pystencils: Any = importlib.import_module("pystencils")
    except ImportError as error:
        msg = "pystencils is not installed; install it with `pip install 'kernelcast[stencils]'`"
        raise InputError(msg) from error
    collection = assignments
    if not isinstance(assignments, pystencils.AssignmentCollection):
        collection = pystencils.AssignmentCollection(list(assignments), [])
    access_type = pystencils.Field.Access
    reads: set[Any] = set()
    writes: set[Any] = set()
    for assignment in collection.all_assignments:
        reads |= assignment.rhs.atoms(access_type)
        if isinstance(assignment.lhs, access_type):
            writes.add(assignment.lhs)
    for access in reads | writes:
        if access.is_absolute_access or not all(map(_is_whole, access.offsets)):
            msg = f"{access}: not affine; model the generated kernel from its OpenCL source"
            raise InputError(msg)
    if not writes:
        raise InputError(f"{name}: no assignment writes to a field; give at least one")
    kinds = [(AccessKind.LOAD, one) for one in sorted(reads, key=str)]
    kinds += [(AccessKind.STORE, one) for one in sorted(writes, key=str)]
    fields = {one.field.name: one.field for _, one in kinds}
    layouts = {key: _lay_out(one, sizes) for key, one in fields.items()}
    arrays = {
        key: read_array(
            f"{key}:{str(one.dtype).removesuffix(' const')}:{math.prod(layouts[key][0])}"
        )
        for key, one in fields.items()
    }
    written = min(writes, key=str).field
    # The spatial coordinates in the order of OpenCL's dimensions.
    shape, written_strides = layouts[written.name]
    axes = sorted(range(written.spatial_dimensions), key=lambda one: written_strides[one])
    accesses = []
    for site, (kind, access) in enumerate(kinds):
        key, first = access.field.name, access.field.spatial_dimensions
        _, strides = layouts[key]
        cell = [
            f"({letter} + {int(access.offsets[coordinate])}) * {strides[coordinate]}"
            for letter, coordinate in zip("xyz", axes, strict=False)
        ]
        cell += [
            f"{int(index) * stride}"
            for index, stride in zip(access.index, strides[first:], strict=False)
        ]
        found = read_access(f"{key}[{' + '.join(cell)}]", arrays, kind=kind, site=site)
        accesses.append(replace(found, text=str(access)))
    # Additions and products count at the field's precision, the rest as special functions.
    counts = dict(collection.operation_count)
    plain = counts.pop("adds") + counts.pop("muls")
    bits = 8 * arrays[written.name].element.bytes
    kernel = WrittenKernel(
        name=name,
        arrays=tuple(arrays.values()),
        accesses=tuple(accesses),
        operations={f"fp{bits}": float(plain), "special": float(sum(counts.values()))},
    )
    reach = max((abs(int(one)) for access in reads for one in access.offsets), default=0)
    border = reach if ghost_layers is None else ghost_layers
    return kernel, NDRange(
        global_size=tuple(shape[coordinate] - 2 * border for coordinate in axes),
        local_size=None if local_size is None else tuple(local_size),
        global_offset=(border,) * len(axes),
    )


def _is_whole(offset: Any) -> bool:  # noqa: ANN401
    return getattr(offset, "is_Integer", isinstance(offset, int))


def _lay_out(field: Any, sizes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:  # noqa: ANN401
    """Find the extents and strides of a field, its values per cell last."""
    dimensions = field.spatial_dimensions
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise InputError(f"field {field.name}: {dimensions} dimensions; one to three are modelled")
    spatial = tuple(field.spatial_shape if all(map(_is_whole, field.spatial_shape)) else sizes)
    if len(spatial) != dimensions:
        msg = f"field {field.name} has a variable size; give `sizes`, {dimensions} numbers of cells"
        raise InputError(msg)
    shape = tuple(int(one) for one in (*spatial, *field.index_shape))
    if all(map(_is_whole, field.strides)):
        return shape, tuple(int(one) for one in field.strides)
    if field.index_shape:
        msg = f"field {field.name} has values per cell and a variable size; give it a fixed size"
        raise InputError(msg)
    strides, running = [0] * len(shape), 1
    for coordinate in reversed(field.layout):  # the layout names the slowest dimension first
        strides[coordinate], running = running, running * shape[coordinate]
    return shape, tuple(strides)
