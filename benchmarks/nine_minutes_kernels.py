"""Our own kernels of `nine_minutes.py`: streams, strides, stencils, and two kernels to tune."""

import random
from collections.abc import Iterator
from pathlib import Path

from kernelcast.records.arguments import Access, BufferArgument, ElementType, Init, LocalArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem


def _read(name: str) -> str:
    path = Path(__file__).with_name("nine_minutes_sources") / f"{name}.cl"
    return path.read_text(encoding="utf-8")


STREAMS = _read("streams")
STREAM_LOCAL = 256
STRIDES = (1, 2, 3, 4, 5, 8, 12, 16, 24, 31, 32, 33)
_STRIDED = _read("stride")
_STRIDED_STEPS = 512
_STENCIL = _read("stencil")
SHAPES = (
    (32, 1), (32, 2), (32, 4), (32, 8), (32, 16), (64, 1), (64, 4), (128, 1), (256, 1), (16, 16),
    (32, 2, 1), (32, 4, 1), (32, 8, 1), (32, 4, 2), (32, 2, 4), (64, 2, 2), (64, 4, 1), (128, 1, 1),
    (16, 8, 2), (16, 16, 1),
)  # fmt: skip
_FOLDS = (1, 4)
# Work-items of a stencil: more bytes than the largest L2 cache of today, and a trial's.
_EXTENTS = {2: ((4096, 4096), (512, 512)), 3: ((512, 256, 256), (128, 64, 64))}
_TUNED = _read("tuned")
_CONFIGURATIONS = 75
_LOCAL_BYTES = 48 << 10
# Elements per side, and a trial's.
_SIDES = {"convolution": (4096, 256), "product": (2048, 256)}
_FLOAT = ElementType.parse("float32")


def _buffer(count: int, access: Access, init: Init = Init.ZEROS) -> BufferArgument:
    return BufferArgument(element=_FLOAT, count=count, access=access, init=init)


def make_stream(name: str, count: int, *, ballast_bytes: int = 1) -> Problem:
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
