"""Our own kernels of `nine_minutes.py`: streams, strides, stencils, and two kernels to tune."""

import random
from collections.abc import Iterator

from kernelcast.records.arguments import Access, BufferArgument, ElementType, Init, LocalArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem

STREAMS = """
kernel void kc_copy(global const float *from, global float *to, local uchar *ballast)
{ int i = get_global_id(0); to[i] = from[i]; if (to[i] == -1.0f) ballast[0] = 1; }
kernel void kc_read(global const float *from, global float *to, local uchar *ballast)
{ int i = get_global_id(0); float x = from[i]; if (x == -1.0f) { ballast[0] = 1; to[0] = x; } }
"""
STREAM_LOCAL = 256
STRIDES = (1, 2, 3, 4, 5, 8, 12, 16, 24, 31, 32, 33)
_STRIDED = """
kernel void kc_stride(global const float *from, global float *to)
{
    uint at = get_local_id(0) * STRIDE;
    float sum = 0.0f;
    for (int i = 0; i < STEPS; ++i) {
        sum += from[at & 4095];
        at += 256 * STRIDE + 1;
    }
    to[get_global_id(0)] = sum;
}
"""
_STRIDED_STEPS = 512
_STENCIL = """
#if DIMENSIONS == 2
#define AT(dx, dy) from[(y + R + (dy)) * (size_t)(WIDTH + 2 * R) + x + R + (dx)]
kernel void kc_stencil(global const float *from, global float *to)
{
    int x = get_global_id(0);
    for (int f = 0; f < FOLD; ++f) {
        int y = get_global_id(1) * FOLD + f;
        float sum = AT(0, 0);
        for (int r = 1; r <= R; ++r)
            sum += 0.1f * r * (AT(r, 0) + AT(-r, 0) + AT(0, r) + AT(0, -r));
        to[y * (size_t)WIDTH + x] = sum;
    }
}
#else
#define AT(dx, dy, dz) from[((z + R + (dz)) * (size_t)(HEIGHT + 2 * R) + y + R + (dy)) \\
                            * (WIDTH + 2 * R) + x + R + (dx)]
kernel void kc_stencil(global const float *from, global float *to)
{
    int x = get_global_id(0), y = get_global_id(1);
    for (int f = 0; f < FOLD; ++f) {
        int z = get_global_id(2) * FOLD + f;
        float sum = AT(0, 0, 0);
        for (int r = 1; r <= R; ++r)
            sum += 0.1f * r * (AT(r, 0, 0) + AT(-r, 0, 0) + AT(0, r, 0) + AT(0, -r, 0)
                               + AT(0, 0, r) + AT(0, 0, -r));
        to[(z * (size_t)HEIGHT + y) * WIDTH + x] = sum;
    }
}
#endif
"""
SHAPES = (
    (32, 1), (32, 2), (32, 4), (32, 8), (32, 16), (64, 1), (64, 4), (128, 1), (256, 1), (16, 16),
    (32, 2, 1), (32, 4, 1), (32, 8, 1), (32, 4, 2), (32, 2, 4), (64, 2, 2), (64, 4, 1), (128, 1, 1),
    (16, 8, 2), (16, 16, 1),
)  # fmt: skip
_FOLDS = (1, 4)
# Work-items of a stencil: more bytes than the largest L2 cache of today, and a trial's.
_EXTENTS = {2: ((4096, 4096), (512, 512)), 3: ((512, 256, 256), (128, 64, 64))}
_TUNED = """
#ifdef CONVOLUTION
#define F 7
kernel void kc_convolution(global const float *from, global const float *filter, global float *to)
{
    int x = get_group_id(0) * (BX * TX) + get_local_id(0);
    int y = get_group_id(1) * (BY * TY) + get_local_id(1);
    float sum[TY][TX];
    for (int j = 0; j < TY; ++j)
        for (int i = 0; i < TX; ++i)
            sum[j][i] = 0.0f;
    for (int fy = 0; fy < F; ++fy)
        for (int fx = 0; fx < F; ++fx)
            for (int j = 0; j < TY; ++j)
                for (int i = 0; i < TX; ++i)
                    sum[j][i] += filter[fy * F + fx]
                                 * from[(y + j * BY + fy) * (N + F - 1) + x + i * BX + fx];
    for (int j = 0; j < TY; ++j)
        for (int i = 0; i < TX; ++i)
            to[(y + j * BY) * N + x + i * BX] = sum[j][i];
}
#else
kernel void kc_product(global const float *a, global const float *b, global float *c)
{
    local float left[KB][BY * TY], right[KB][BX * TX];
    int lx = get_local_id(0), ly = get_local_id(1), item = ly * BX + lx;
    int x = get_group_id(0) * (BX * TX), y = get_group_id(1) * (BY * TY);
    float sum[TY][TX];
    for (int j = 0; j < TY; ++j)
        for (int i = 0; i < TX; ++i)
            sum[j][i] = 0.0f;
    for (int k = 0; k < N; k += KB) {
        for (int i = item; i < BY * TY * KB; i += BX * BY)
            left[i % KB][i / KB] = a[(y + i / KB) * N + k + i % KB];
        for (int i = item; i < BX * TX * KB; i += BX * BY)
            right[i / (BX * TX)][i % (BX * TX)] = b[(k + i / (BX * TX)) * N + x + i % (BX * TX)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int s = 0; s < KB; ++s)
            for (int j = 0; j < TY; ++j)
                for (int i = 0; i < TX; ++i)
                    sum[j][i] += left[s][ly + j * BY] * right[s][lx + i * BX];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int j = 0; j < TY; ++j)
        for (int i = 0; i < TX; ++i)
            c[(y + ly + j * BY) * N + x + lx + i * BX] = sum[j][i];
}
#endif
"""
_CONFIGURATIONS = 75
_LOCAL_BYTES = 48 << 10
# Elements per side, and a trial's.
_SIDES = {"convolution": (4096, 256), "product": (2048, 256)}
_FLOAT = ElementType.parse("float32")


def _buffer(count: int, access: Access, init: Init = Init.ZEROS) -> BufferArgument:
    return BufferArgument(element=_FLOAT, count=count, access=access, init=init)


def make_stream(name: str, count: int, *, ballast_bytes: int = 1) -> Problem:
    """Make a launch of one of `STREAMS`, with local memory that nothing uses."""
    return Problem(
        name=name,
        kernel=Kernel(name=name, source=STREAMS),
        ndrange=NDRange(global_size=(count,), local_size=(STREAM_LOCAL,)),
        arguments=(
            _buffer(count, Access.READ), _buffer(count, Access.WRITE),
            LocalArgument(bytes=ballast_bytes),
        ),
    )  # fmt: skip


def make_stride(stride: int, work_groups: int) -> Problem:
    """Make a launch whose neighbours load at a stride from 16 KiB, which the L1 cache holds."""
    count = work_groups * STREAM_LOCAL
    options = (f"-DSTRIDE={stride}", f"-DSTEPS={_STRIDED_STEPS}")
    return Problem(
        name=f"stride {stride}",
        kernel=Kernel(name="kc_stride", source=_STRIDED, build_options=options),
        ndrange=NDRange(global_size=(count,), local_size=(STREAM_LOCAL,)),
        arguments=(_buffer(4096, Access.READ), _buffer(count, Access.WRITE)),
    )


def list_stencils(*, is_small: bool = False) -> Iterator[Problem]:
    """List stencils of every shape of work-groups, folded and not."""
    for local in SHAPES:
        for fold in _FOLDS:
            extents = _EXTENTS[len(local)][is_small]
            radius = 1 if len(local) == 2 else 4
            padded = total = 1
            for extent in extents:
                padded *= extent + 2 * radius
                total *= extent
            options = (
                f"-DDIMENSIONS={len(local)}", f"-DR={radius}", f"-DFOLD={fold}",
                f"-DWIDTH={extents[0]}", f"-DHEIGHT={extents[1]}",
            )  # fmt: skip
            yield Problem(
                name=f"stencil {'x'.join(map(str, local))} fold {fold}",
                kernel=Kernel(name="kc_stencil", source=_STENCIL, build_options=options),
                ndrange=NDRange(global_size=(*extents[:-1], extents[-1] // fold), local_size=local),
                arguments=(_buffer(padded, Access.READ), _buffer(total, Access.WRITE)),
            )


def list_configurations(*, is_small: bool = False) -> Iterator[Problem]:
    """List configurations of a convolution and of a matrix product, the same ones each time."""
    choices = [
        (bx, by, tx, ty, kb)
        for bx in (8, 16, 32, 64) for by in (4, 8, 16) for tx in (1, 2, 4) for ty in (1, 2, 4, 8)
        for kb in (8, 16, 32) if 64 <= bx * by <= 1024
    ]  # fmt: skip
    for name, sides in _SIDES.items():
        side = sides[is_small]
        is_convolution = name == "convolution"
        fitting = [
            one for one in choices
            if (one[4] == 8 if is_convolution else
                4 * one[4] * (one[0] * one[2] + one[1] * one[3]) <= _LOCAL_BYTES)
            and one[0] * one[2] <= 256 and one[1] * one[3] <= 128
        ]  # fmt: skip
        for config in random.Random(0).sample(fitting, _CONFIGURATIONS):
            bx, by, tx, ty, kb = config
            options = (
                f"-DBX={bx}", f"-DBY={by}", f"-DTX={tx}", f"-DTY={ty}", f"-DKB={kb}", f"-DN={side}",
                *(["-DCONVOLUTION"] if is_convolution else []),
            )  # fmt: skip
            inputs = ((side + 6) ** 2, 49) if is_convolution else (side**2, side**2)
            yield Problem(
                name=f"{name} {bx}x{by} {tx}x{ty}" + ("" if is_convolution else f" {kb}"),
                kernel=Kernel(name=f"kc_{name}", source=_TUNED, build_options=options),
                ndrange=NDRange(global_size=(side // tx, side // ty), local_size=(bx, by)),
                arguments=(
                    *(_buffer(count, Access.READ, Init.UNIFORM) for count in inputs),
                    _buffer(side**2, Access.WRITE),
                ),
            )
