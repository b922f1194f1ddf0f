"""Hypothesis strategies for the records that pass between rooms."""

from datetime import UTC

from hypothesis import strategies as st

from kernelcast.launches.recordings import Recording
from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    ElementType,
    Init,
    LocalArgument,
    ScalarArgument,
)
from kernelcast.records.contention import Contention
from kernelcast.records.device import SaturationPoint, Trait, TraitSource
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import MAX_DIMENSIONS, GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun, TimedLaunch
from support.builders import make_description

_LARGEST_OFFSET = 100
_LANES = (1, 2, 3, 4, 8, 16)
_BASES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "float32", "float64")  # fmt: skip
_RECIPES = [recipe for recipe in Init if recipe is not Init.FILE]


@st.composite
def ndranges(
    draw: st.DrawFn, *, max_groups: int = 9, max_local: int = 6, uniform: bool | None = None
) -> NDRange:
    """Draw index spaces of one to three dimensions, with offsets, local size chosen."""
    dimensions = draw(st.integers(1, MAX_DIMENSIONS))
    wants_remainder = draw(st.booleans()) if uniform is None else not uniform
    least = 2 if wants_remainder else 1
    local = [draw(st.integers(least, max(least, max_local))) for _ in range(dimensions)]
    groups = [draw(st.integers(least, max(least, max_groups))) for _ in range(dimensions)]
    missing = [0] * dimensions
    if wants_remainder:
        cut = draw(st.integers(0, dimensions - 1))
        missing = [
            draw(st.integers(1 if axis == cut else 0, local[axis] - 1))
            for axis in range(dimensions)
        ]
    return NDRange(
        global_size=tuple(g * n - m for g, n, m in zip(groups, local, missing, strict=True)),
        local_size=tuple(local),
        global_offset=tuple(draw(st.integers(0, _LARGEST_OFFSET)) for _ in range(dimensions)),
    )


@st.composite
def boxes(draw: st.DrawFn, ndrange: NDRange) -> GroupBox:
    """Draw a box of work-groups inside an index space."""
    start = [draw(st.integers(0, count - 1)) for count in ndrange.group_counts]
    shape = [
        draw(st.integers(1, count - first))
        for count, first in zip(ndrange.group_counts, start, strict=True)
    ]
    return GroupBox(start=tuple(start), shape=tuple(shape))


@st.composite
def disjoint_boxes(draw: st.DrawFn, ndrange: NDRange, *, most: int = 4) -> tuple[GroupBox, ...]:
    """Draw one to `most` boxes inside an index space, no work-group in two of them."""
    chosen: list[GroupBox] = []
    for box in draw(st.lists(boxes(ndrange), min_size=1, max_size=most)):
        if not any(box.overlaps(other) for other in chosen):
            chosen.append(box)
    return tuple(chosen)


def contentions() -> st.SearchStrategy[Contention]:
    """Draw what other programs left to a device."""
    return st.builds(
        Contention,
        worked_s=st.floats(1e-3, 1.0),
        waited_s=st.floats(0.0, 9.0),
        others=st.floats(0.0, 99.0),
        trials=st.integers(1, 9),
        measured_at=st.datetimes(timezones=st.just(UTC)),
    )


@st.composite
def sample_runs(draw: st.DrawFn, ndrange: NDRange) -> SampleRun:
    """Draw the samples of one moment."""
    durations = st.floats(1e-7, 10.0)
    return SampleRun(
        ndrange=ndrange,
        launches=tuple(
            TimedLaunch(
                box=box,
                window=number,
                duration_s=draw(durations),
                clock_s=draw(st.none() | durations),
            )
            for number, box in enumerate(draw(disjoint_boxes(ndrange)))
        ),
        launch_overhead_s=draw(durations),
        is_even=draw(st.booleans()),
        at_s=draw(st.floats(0.0, 2e9)),
        contention=draw(st.none() | contentions()),
    )


def element_types() -> st.SearchStrategy[ElementType]:
    """Draw types of buffer elements and scalars."""
    return st.builds(ElementType, base=st.sampled_from(_BASES), lanes=st.sampled_from(_LANES))


@st.composite
def scalar_arguments(draw: st.DrawFn) -> ScalarArgument:
    """Draw scalars and vectors whose values fit their type."""
    element = draw(element_types())
    number: st.SearchStrategy[int | float]
    if element.dtype.kind == "f":
        number = st.floats(-1000, 1000, width=16)
    else:
        low, high = element.limits
        number = st.integers(int(low), int(high))
    values = draw(st.lists(number, min_size=element.lanes, max_size=element.lanes))
    return ScalarArgument(element=element, values=tuple(values))


def buffer_arguments(*, max_count: int = 64) -> st.SearchStrategy[BufferArgument]:
    """Draw buffers with every recipe but files."""
    return st.builds(
        BufferArgument,
        element=element_types(),
        count=st.integers(1, max_count),
        init=st.sampled_from(_RECIPES),
        access=st.none() | st.sampled_from(Access),
    )


def problems() -> st.SearchStrategy[Problem]:
    """Draw problems that are sound as records; their source is no program of theirs."""
    arguments: st.SearchStrategy[Argument] = st.one_of(
        buffer_arguments(),
        scalar_arguments(),
        st.builds(LocalArgument, bytes=st.integers(1, 4096)),
    )
    return st.builds(
        Problem,
        name=st.sampled_from(["triad", "nbody"]),
        kernel=kernels(),
        ndrange=ndranges(),
        arguments=st.lists(arguments, max_size=5).map(tuple),
    )


def kernels() -> st.SearchStrategy[Kernel]:
    """Draw kernels that differ in name, text and options."""
    return st.builds(
        Kernel,
        name=st.from_regex(r"[a-z_]\w{0,10}", fullmatch=True),
        source=st.text(min_size=1, max_size=40).filter(lambda text: bool(text.strip())),
        build_options=st.lists(st.sampled_from(["-DN=1", "-DN=2", "-w"]), max_size=2).map(tuple),
    )


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Draw recordings of a few launches on a made-up device."""
    ndrange = draw(ndranges())
    durations = st.floats(1e-7, 10.0)
    return Recording(
        kernel_name=draw(st.sampled_from(["triad", "nbody"])),
        kernel_digest=draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
        device=make_description(),
        ndrange=ndrange,
        saturation=SaturationPoint(
            p_sat=Trait(value=draw(st.integers(1, 32)), source=draw(st.sampled_from(TraitSource))),
            concurrency=draw(st.integers(1, 64)),
            computed=draw(st.none() | st.integers(1, 32)),
            measured=draw(st.none() | st.integers(1, 32)),
            limiter=draw(st.none() | st.just("registers")),
        ),
        launch_overhead_s=draw(durations),
        runs=tuple(draw(st.lists(sample_runs(ndrange), min_size=1, max_size=2))),
        whole_s=tuple(draw(st.lists(durations, max_size=3))),
    )
