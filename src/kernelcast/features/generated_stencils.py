"""Takes kernels over from pystencils, a code generator; it is an optional dependency."""

import importlib
import math
from collections.abc import Sequence
from typing import Any

from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind, AddressPattern, MemoryAccess
from kernelcast.features.written_accesses import WrittenArray, WrittenKernel
from kernelcast.records.arguments import ElementType
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import MemorySpace


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
    _require()
    reads, writes, counted = _collect(assignments)
    if not writes:
        msg = f"{name}: no assignment writes to a field; give at least one"
        raise InputError(msg)
    fields = {access.field.name: access.field for access in (*reads, *writes)}
    shapes = {key: _find_shape(one, sizes) for key, one in fields.items()}
    strides = {key: _find_strides(one, shapes[key]) for key, one in fields.items()}
    written = writes[0].field
    # The spatial coordinates in the order of OpenCL's dimensions.
    axes = sorted(range(written.spatial_dimensions), key=lambda one: strides[written.name][one])
    kinds = [(AccessKind.LOAD, one) for one in reads] + [(AccessKind.STORE, one) for one in writes]
    kernel = WrittenKernel(
        name=name,
        arrays=tuple(
            WrittenArray(
                name=one.name,
                element=_read_type(one),
                extents=(Expr.constant(math.prod(shapes[key])),),
            )
            for key, one in fields.items()
        ),
        accesses=tuple(
            _place(one, kind, site, strides[one.field.name], axes)
            for site, (kind, one) in enumerate(kinds)
        ),
        operations=_count_operations(counted, written),
    )
    reach = max((abs(int(one)) for access in reads for one in access.offsets), default=0)
    border = reach if ghost_layers is None else ghost_layers
    extents = [shapes[written.name][coordinate] for coordinate in axes]
    interior = tuple(extent - 2 * border for extent in extents)
    return kernel, NDRange(
        global_size=interior,
        local_size=None if local_size is None else tuple(local_size),
        global_offset=(border,) * len(interior),
    )


def _require() -> Any:  # noqa: ANN401
    try:
        return importlib.import_module("pystencils")
    except ImportError as error:
        msg = "pystencils is not installed; install it with `pip install 'kernelcast[stencils]'`"
        raise InputError(msg) from error


def _collect(assignments: Any) -> tuple[list[Any], list[Any], Any]:  # noqa: ANN401
    """Give distinct accesses in the order of their text, and the collection that counts."""
    pystencils = _require()
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
        if access.is_absolute_access or not all(_is_whole(one) for one in access.offsets):
            msg = f"{access}: not affine; model the generated kernel from its OpenCL source"
            raise InputError(msg)
    return sorted(reads, key=str), sorted(writes, key=str), collection


def _is_whole(offset: Any) -> bool:  # noqa: ANN401
    return getattr(offset, "is_Integer", isinstance(offset, int))


def _find_shape(field: Any, sizes: Sequence[int]) -> tuple[int, ...]:  # noqa: ANN401
    if not 1 <= field.spatial_dimensions <= MAX_DIMENSIONS:
        msg = (
            f"field {field.name}: {field.spatial_dimensions} dimensions; one to three are modelled"
        )
        raise InputError(msg)
    spatial = tuple(field.spatial_shape)
    if not all(_is_whole(one) for one in spatial):
        spatial = tuple(sizes)
    if len(spatial) != field.spatial_dimensions:
        msg = (
            f"field {field.name} has a variable size; give `sizes`, "
            f"{field.spatial_dimensions} numbers of cells"
        )
        raise InputError(msg)
    return tuple(int(one) for one in (*spatial, *field.index_shape))


def _find_strides(field: Any, shape: Sequence[int]) -> tuple[int, ...]:  # noqa: ANN401
    if all(_is_whole(one) for one in field.strides):
        return tuple(int(one) for one in field.strides)
    if field.index_shape:
        msg = f"field {field.name} has values per cell and a variable size; give it a fixed size"
        raise InputError(msg)
    strides, running = [0] * len(shape), 1
    for coordinate in reversed(field.layout):  # the layout names the slowest dimension first
        strides[coordinate], running = running, running * shape[coordinate]
    return tuple(strides)


def _read_type(field: Any) -> ElementType:  # noqa: ANN401
    return ElementType.parse(str(field.dtype).removesuffix(" const"))


def _place(
    access: Any,  # noqa: ANN401
    kind: AccessKind,
    site: int,
    strides: Sequence[int],
    axes: Sequence[int],
) -> MemoryAccess:
    element = _read_type(access.field)
    cell = Expr.constant(0)
    for axis, coordinate in enumerate(axes):
        place = Expr.symbol(Symbol(SymbolKind.GLOBAL_ID, axis=axis))
        cell += (place + int(access.offsets[coordinate])) * strides[coordinate]
    for number, index in enumerate(access.index):
        cell += int(index) * strides[access.field.spatial_dimensions + number]
    return MemoryAccess(
        site=site, block=site, line=0, text=str(access), kind=kind, space=MemorySpace.GLOBAL,
        buffer=access.field.name, bytes=element.bytes, offset_bytes=cell * element.bytes,
        pattern=AddressPattern.QUASI_AFFINE,
    )  # fmt: skip


def _count_operations(collection: Any, field: Any) -> dict[str, float]:  # noqa: ANN401
    """Count additions and products at the field's precision; the rest as special functions."""
    counts = collection.operation_count
    bits = _read_type(field).dtype.itemsize * 8
    plain = counts["adds"] + counts["muls"]
    special = sum(count for key, count in counts.items() if key not in {"adds", "muls"})
    return {f"fp{bits}": float(plain), "special": float(special)}
