"""Kernels that execute one kind of instruction, and what numpy says they compute.

Every chain starts from values read from a buffer and different in each work-item, and every step
needs the last one's result and operands from the buffer: a compiler can neither hoist the work out
of the loop over work-items, nor fold steps, nor find a closed form. All values stay near 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_STREAMS = 128
_STARTS = 64
"""Work-items that differ in their start; the next ones start alike."""
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionKind:
    """A kind of instruction as it is executed."""

    name: str
    """One of `records.machine.INSTRUCTIONS`."""
    type_name: str
    step: str
    """OpenCL C of one step on ``x``; ``a`` and ``b`` are read from a buffer."""
    model: Callable[[Array, Any, Any], Array]
    operations: int
    """Operations that a step counts as; a multiply-add is two."""
    operands: tuple[float, float]
    unroll: int = 16
    """Steps per iteration: less for what compilers put inline."""
    tolerance: float = 1e-3
    """Relative error that is allowed; none for integers."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in numpy."""
        return np.dtype({"float": "f4", "double": "f8", "uint": "u4"}[self.type_name])


def _multiply_add(x: Array, a: Any, b: Any) -> Array:  # noqa: ANN401 - numpy scalars of any type
    return np.asarray(x * a + b)


def _subtract(x: Array, a: Any, _: Any) -> Array:  # noqa: ANN401 - numpy scalars of any type
    return np.asarray(a - x)


def _cosine(x: Array, a: Any, _: Any) -> Array:  # noqa: ANN401 - numpy scalars of any type
    return np.asarray(np.cos(x) + a)


_HALVES = (0.5, 0.5)
_ONE = (1.0, 0.0)
_ODD = (1664525, 1013904223)

KINDS = (
    InstructionKind(
        name="fp32", type_name="float", step="a - x", model=_subtract, operations=1, operands=_ONE,
        unroll=15,
    ),
    InstructionKind(
        name="fp32_fma", type_name="float", step="mad(x, a, b)", model=_multiply_add, operations=2,
        operands=_HALVES,
    ),
    InstructionKind(
        name="int32", type_name="uint", step="x * a + b", model=_multiply_add, operations=2,
        operands=_ODD, tolerance=0.0,
    ),
    InstructionKind(
        name="fp64", type_name="double", step="a - x", model=_subtract, operations=1, operands=_ONE,
        unroll=15,
    ),
    InstructionKind(
        name="fp64_fma", type_name="double", step="mad(x, a, b)", model=_multiply_add, operations=2,
        operands=_HALVES,
    ),
    InstructionKind(
        name="native_special", type_name="float", step="native_cos(x)", model=_cosine, operations=1,
        operands=(0.0, 0.0), unroll=2, tolerance=2e-2,
    ),
    InstructionKind(
        name="special", type_name="float", step="cos(x)", model=_cosine, operations=1,
        operands=(0.0, 0.0), unroll=1,
    ),
)  # fmt: skip
"""The paper's SP, MADD, INT, DP, SF and software-sf. An integer step multiplies and adds.

Additions are written ``a - x``: Intel's compiler takes ``x + a`` in a loop for a sum, reorders it
without leave and adds 16 at once (measured: a chain 16 times as fast as the adder). 15 of them per
iteration, so that an odd number of iterations ends in another value than it began with.
"""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Shape:
    """How much a work-item has at once."""

    width: int = 1
    chains: int = 1
    """Independent chains of dependent instructions: the paper's ILP."""

    @property
    def streams(self) -> int:
        """Steps that do not depend on each other."""
        return self.width * self.chains


def kernel_name(kind: InstructionKind, shape: Shape) -> str:
    """Give the name of a kind's kernel of a shape."""
    return f"kc_{kind.name}_w{shape.width}_c{shape.chains}"


def write_source(kind: InstructionKind, shape: Shape) -> str:
    """Write the kernel that takes ``kind.unroll * shape.chains`` vector steps per iteration.

    Examples
    --------
    >>> "float2 x0" in write_source(KINDS[0], Shape(width=2))
    True
    """
    scalar = kind.type_name
    vector = scalar if shape.width == 1 else f"{scalar}{shape.width}"
    names = [f"x{number}" for number in range(shape.chains)]
    load = "in[{0}]" if shape.width == 1 else f"vload{shape.width}({{0}}, in)"
    begin = "\n    ".join(
        f"{vector} {name} = {load.format(number)} + ({vector})own;"
        for number, name in enumerate(names)
    )
    steps = "\n        ".join(f"{name} = STEP({name});" for name in names)
    body = "\n        ".join([steps] * kind.unroll)
    elements = [
        name if shape.width == 1 else f"{name}.s{lane:x}"
        for name in names
        for lane in range(shape.width)
    ]
    return f"""
#define STEP(x) ({kind.step})
kernel void {kernel_name(kind, shape)}(global {scalar} *out, global const {scalar} *in, int n,
                                       local uchar *ballast)
{{
    const size_t item = get_global_id(0);
    const {vector} a = ({vector})(in[{MOST_STREAMS}]), b = ({vector})(in[{MOST_STREAMS + 1}]);
    const {scalar} own = ({scalar})(item % {_STARTS}) * in[{MOST_STREAMS + 2}];
    {begin}
    if (n < 0)
        ballast[get_local_id(0)] = 1;
    for (int i = 0; i < n; ++i) {{
        {body}
    }}
    out[item] = {" + ".join(elements)};
}}
#undef STEP
"""


def make_input(kind: InstructionKind) -> Array:
    """Make the starts of all chains, the operands, and what makes work-items differ."""
    starts: Array
    if kind.dtype.kind == "u":
        starts = np.arange(1, MOST_STREAMS + 1) * 2654435761 % 2**32
        rest = [*kind.operands, 40503]
    else:
        starts = 0.5 + np.arange(MOST_STREAMS) / (4 * MOST_STREAMS)
        rest = [*kind.operands, 1 / 256]
    return np.concatenate([starts, rest]).astype(kind.dtype)


def expect(kind: InstructionKind, shape: Shape, iterations: int, work_items: int) -> Array:
    """Compute what the kernel of a shape writes."""
    given = make_input(kind)
    a, b, apart = given[MOST_STREAMS:]
    own = (np.arange(work_items) % _STARTS).astype(kind.dtype) * apart
    x = given[: shape.streams][None, :] + own[:, None]
    for _ in range(iterations * kind.unroll):
        x = kind.model(x, a, b)
    return np.asarray(x.sum(axis=1, dtype=kind.dtype))
