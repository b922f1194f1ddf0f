"""Kernels of the measured families as OpenCL C, so that the GPU model can be asked about them.

Each is written from the description of its family in ``shared/reference/gpu_measured``; what a
work-item loads, stores and computes follows it, names do not.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

from kernelcast.expressions.accesses import AccessKind, ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.estimating import add_code
from kernelcast.launches.modelling.launches import ModelledKernel, model_kernel
from kernelcast.records.arguments import BufferArgument, ElementType
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

Buffers = tuple[tuple[str, str, int], ...]
"""Name, element type and number of elements of each buffer, in the order of the arguments."""
TYPES = {"float64": "double", "float32": "float", "float32x2": "float2", "float32x4": "float4",
         "int32": "int"}  # fmt: skip


@lru_cache(maxsize=256)
def analyse(
    body: str, buffers: Buffers, sizes: tuple[int, ...], options: tuple[str, ...]
) -> ModelledKernel:
    """Analyse a kernel's body once for all local sizes."""
    names = ", ".join(f"global {TYPES[kind]} *restrict {name}" for name, kind, _ in buffers)
    source = f"#define G get_global_id\nkernel void k({names}) {{\n{body}\n}}\n"
    arguments = tuple(
        BufferArgument(element=ElementType.parse(kind), count=count) for _, kind, count in buffers
    )
    problem = Problem(
        name="k", kernel=Kernel(name="k", source=source, build_options=options),
        ndrange=NDRange(global_size=sizes), arguments=arguments,
    )  # fmt: skip
    return model_kernel(problem)


def launch(
    body: str,
    buffers: Buffers,
    items: Sequence[int],
    local_size: Sequence[int],
    registers: int | None = None,
    options: tuple[str, ...] = (),
) -> ModelledLaunch:
    """Launch a kernel over so many work-items, rounded up to whole work-groups."""
    rank = len(items)
    local = tuple(local_size[:rank])
    sizes = tuple(-(-n // by) * by for n, by in zip(items, local, strict=True))
    kernel = analyse(body, buffers, sizes, options)
    kernel.registers = registers
    return add_code(kernel.launch(local), find_machine("a40"))


def box_2d(radius: int, local_size: Sequence[int], *, in_l1: bool = False) -> ModelledLaunch:
    """Make the 2-D box stencil; with `in_l1` all loads fall into a window of 128 x 64."""
    side = 15_000
    steps = range(-radius, radius + 1)
    places = [f"{dy * side + dx:+d}" for dy, dx in product(steps, steps)]
    total = " + ".join(f"B[p{place}]" for place in places)
    if in_l1:
        body = (
            f"int x = G(0) % 128 + 1024, y = G(1) % 64 + 1024, p = y * {side} + x;\n"
            f"double s = {total};\n"
            "if (G(0) > 123123 + s) A[p] = s;"  # never met, which no compiler knows
        )
    else:
        end = side - radius
        body = (
            f"int x = G(0), y = G(1);\n"
            f"if (x < {radius} || x >= {end} || y < {radius} || y >= {end}) return;\n"
            f"int p = y * {side} + x;\nA[p] = 0.25 * ({total});"
        )
    buffers = (("A", "float64", side * side), ("B", "float64", side * side))
    found = launch(body, buffers, (side, side), local_size)
    loads = tuple(one for one in found.accesses if one.kind is not AccessKind.STORE)
    return replace(found, accesses=loads) if in_l1 else found


STREAMS = {
    "Copy": "c[i] = a[i];", "Mul": "b[i] = 0.4 * c[i];", "Add": "c[i] = a[i] + b[i];",
    "Triad": "a[i] = b[i] + 0.4 * c[i];",
}  # fmt: skip


def stream(routine: str, count: int, work_group: int = 1024) -> ModelledLaunch:
    """Make a kernel of BabelStream."""
    buffers = tuple((name, "float64", count) for name in "abc")
    return launch(f"int i = G(0);\n{STREAMS[routine]}", buffers, (count,), (work_group,))


def laplacian(
    tile: int, sides: Sequence[int], local_size: Sequence[int], *, is_ascending: bool,
    registers: int | None,
) -> ModelledLaunch:  # fmt: skip
    """Make the 7-point Laplacian of `tile` rows a work-item, loads as the source orders them.

    Rows that results of a work-item share are loaded once.
    """
    nx, ny, nz = sides
    slice_ = nx * ny
    lines = [
        f"int i = G(0), j = {tile} * G(1), k = G(2);",
        f"if (i == 0 || i >= {nx - 1} || k == 0 || k >= {nz - 1}) return;",
        f"int p = i + {nx} * j + {slice_} * k;\ndouble s = 0;",
    ]
    if tile == 1:
        lines.append(f"if (j == 0 || j >= {ny - 1}) return;")
    below = f"s += j > 0 ? u[p - {nx}] : 0;"
    above = f"s += j < {ny - tile} ? u[p + {tile * nx}] : 0;"
    rows = [f"p + {n * nx}" for n in range(tile)]
    if is_ascending:
        lines += [f"s += u[{row} - {slice_}];" for row in rows]
        lines.append(below)
        lines += [f"s += u[{row} - 1];\ns += u[{row}];\ns += u[{row} + 1];" for row in rows]
        lines.append(above)
        lines += [f"s += u[{row} + {slice_}];" for row in rows]
    else:
        for n, row in enumerate(rows):
            lines.append(f"s += u[{row}];\ns += u[{row} - 1];\ns += u[{row} + 1];")
            lines += [below] if n == 0 else []
            lines += [above] if n == tile - 1 else []
            lines.append(f"s += u[{row} - {slice_}];\ns += u[{row} + {slice_}];")
    lines += [f"if (j + {n} > 0 && j + {n} < {ny - 1}) f[{row}] = s;" for n, row in enumerate(rows)]
    count = nx * ny * nz
    buffers = (("f", "float64", count), ("u", "float64", count))
    return launch("\n".join(lines), buffers, (nx, -(-ny // tile), nz), local_size, registers)


def coulomb(
    local_size: Sequence[int], cells: int, *, as_arrays: bool, unrolled: int, registers: int
) -> ModelledLaunch:
    """Make the Coulomb summation of 64 atoms on a grid; a work-item has `cells` along z.

    Parameters
    ----------
    unrolled : int
        Turns of the loop over cells that a pragma asks to unroll; 0 leaves it to the compiler.
    """
    side, atoms = 256, 64
    load = (
        "float ax = X[n], ay = Y[n], az = Z[n], w = W[n];"
        if as_arrays
        else "float4 a = A[n];\nfloat ax = a.x, ay = a.y, az = a.z, w = a.w;"
    )
    body = f"""int x = G(0), y = G(1), z = {cells} * G(2);
int p = x + {side} * y + {side * side} * z;
float cx = 0.5f * x, cy = 0.5f * y, cz = 0.5f * z;
float e[{cells}];
for (int i = 0; i < {cells}; i++) e[i] = 0;
for (int n = 0; n < {atoms}; n++) {{
    {load}
    float dx = cx - ax, dy = cy - ay, dz = cz - az, r = dx * dx + dy * dy;
{f"#pragma unroll {unrolled}" if unrolled else ""}
    for (int i = 0; i < {cells}; i++) {{
        e[i] += w * native_rsqrt(r + dz * dz);
        dz += 0.5f;
    }}
}}
for (int i = 0; i < {cells}; i++) E[p + {side * side} * i] += e[i];"""
    own = (
        [(name, "float32", atoms) for name in "XYZW"] if as_arrays else [("A", "float32x4", atoms)]
    )
    buffers = (("E", "float32", side**3), *own)
    return launch(
        body, tuple(buffers), (side, side, side // cells), local_size, registers,
        ("-cl-denorms-are-zero",),
    )  # fmt: skip


# Whether a lies between b and c, and what a crossing does to the count: ways that a tuner tries.
BETWEEN = (
    "((b) > (a)) != ((c) > (a))",
    "((b) <= (a) && (c) > (a)) || ((b) > (a) && (c) <= (a))",
    "(a) - (b) == 0.0f || ((a) - (b)) * ((a) - (c)) < 0.0f",
    "((a) - (b)) * ((a) - (c)) < 0.0f || (a) - (b) == 0.0f",
)
CROSS = (
    "if (BETWEEN(q[t].y, u.y, w.y) && q[t].x < slope * (q[t].y - u.y) + u.x) n[t] = !n[t];",
    "{ int is = BETWEEN(q[t].y, u.y, w.y); n[t] += is && q[t].x < u.x + slope * (q[t].y - u.y); }",
    "if (BETWEEN(q[t].y, u.y, w.y) && q[t].x < slope * (q[t].y - u.y) + u.x) n[t] += 1;",
)


def polygon(block: int, tile: int, between: int, cross: int, registers: int) -> ModelledLaunch:
    """Make the point-in-polygon test; a work-item's points lie a work-group apart."""
    points, vertices = 20_000_000, 600
    body = f"""#define BETWEEN(a, b, c) ({BETWEEN[between]})
int i = get_group_id(0) * {block * tile} + get_local_id(0);
if (i >= {points}) return;
int n[{tile}];
float2 q[{tile}];
#pragma unroll
for (int t = 0; t < {tile}; t++) {{
    n[t] = 0;
    if (i + {block} * t < {points}) q[t] = P[i + {block} * t];
}}
for (int v = 0; v < {vertices}; v++) {{
    float2 u = V[v], w = V[v > 0 ? v - 1 : {vertices - 1}];
    float slope = (w.x - u.x) / (w.y - u.y);
#pragma unroll
    for (int t = 0; t < {tile}; t++) {CROSS[cross]}
}}
#pragma unroll
for (int t = 0; t < {tile}; t++)
    if (i + {block} * t < {points}) C[i + {block} * t] = {"n[t]" if cross == 0 else "n[t] & 1"};"""
    buffers = (("C", "int32", points), ("P", "float32x2", points), ("V", "float32x2", vertices))
    items = -(-points // tile)
    exact = ("-cl-fp32-correctly-rounded-divide-sqrt",)  # as CUDA divides
    return launch(body, buffers, (items,), (block,), registers, exact)


def add_vectors(count: int, block: int, registers: int) -> ModelledLaunch:
    """Make the addition of two vectors and a scalar."""
    buffers = tuple((name, "float32", count) for name in "abc")
    return launch("int i = G(0);\nc[i] = a[i] + b[i] + 1;", buffers, (count,), (block,), registers)


def transpose(side: int, *, rows: int, registers: int | None = None) -> ModelledLaunch:
    """Make the naive transposition by tiles of 32 x 32, `rows` work-items along a tile's height."""
    steps = range(0, 32, rows)
    lines = ["int x = get_group_id(0) * 32 + get_local_id(0);",
             "int y = get_group_id(1) * 32 + get_local_id(1);"]  # fmt: skip
    lines += [f"b[x * {side} + y + {n}] = a[(y + {n}) * {side} + x];" for n in steps]
    buffers = tuple((name, "float32", side * side) for name in "ab")
    return launch("\n".join(lines), buffers, (side, side // len(steps)), (32, rows), registers)


def textbook(name: str, count: int, side: int, registers: int) -> ModelledLaunch | None:
    """Make a textbook kernel; None for those whose work is not described well enough."""
    if name in {"vector_add", "saxpy", "strided_copy_8", "random_access"}:
        bodies = {
            "vector_add": "c[i] = a[i] + b[i];", "saxpy": "b[i] = 2.0f * a[i] + b[i];",
            "strided_copy_8": "c[8 * i] = a[8 * i];", "random_access": "c[i] = a[0] + b[i];",
        }  # fmt: skip
        items = count // 8 if name == "strided_copy_8" else count
        buffers = tuple((one, "float32", count) for one in "abc")
        body = f"int i = G(0);\nif (i >= {items}) return;\n{bodies[name]}"
        return launch(body, buffers, (items,), (256,), registers)
    pair = tuple((one, "float32", side * side) for one in "ab")
    if name == "naive_transpose":
        body = f"int x = G(0), y = G(1);\nb[x * {side} + y] = a[y * {side} + x];"
        return launch(body, pair, (side, side), (16, 16), registers)
    if name == "shared_transpose":
        body = (
            "local float t[32][33];\nint x = G(0), y = G(1);\n"
            f"t[get_local_id(1)][get_local_id(0)] = a[y * {side} + x];\n"
            "barrier(CLK_LOCAL_MEM_FENCE);\n"
            "x = get_group_id(1) * 32 + get_local_id(0);\n"
            "y = get_group_id(0) * 32 + get_local_id(1);\n"
            f"b[y * {side} + x] = t[get_local_id(0)][get_local_id(1)];"
        )
        return launch(body, pair, (side, side), (32, 32), registers)
    if name in {"conv2d_3x3", "conv2d_7x7"}:
        width = int(name[-1])
        end = side - width + 1
        terms = " + ".join(
            f"a[p + {dy * side + dx}] * w[{dy * width + dx}]"
            for dy, dx in product(range(width), repeat=2)
        )
        body = (
            f"int x = G(0), y = G(1);\nif (x >= {end} || y >= {end}) return;\n"
            f"int p = y * {side} + x;\nb[p] = {terms};"
        )
        buffers = (*pair, ("w", "float32", width * width))
        return launch(body, buffers, (side, side), (16, 16), registers)
    if name == "matmul_naive":
        body = (
            f"int x = G(0), y = G(1);\nfloat s = 0;\nfor (int k = 0; k < {side}; k++)\n"
            f"s += a[y * {side} + k] * b[k * {side} + x];\nc[y * {side} + x] = s;"
        )
        buffers = tuple((one, "float32", side * side) for one in "abc")
        return launch(body, buffers, (side, side), (16, 16), registers)
    return None
