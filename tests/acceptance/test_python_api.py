"""What Python programs ask and tell: predictors, launches of their own objects, problem files."""

import asyncio
import contextlib
import dataclasses
import gc
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest
from pyopencl.tools import ImmediateAllocator, MemoryPool

import kernelcast
from support.device_queues import (
    list_devices,
    make_launch,
    make_queue,
    put,
    read,
    write_calibration,
)

pytestmark = pytest.mark.device

SOURCE = """
typedef float real;
typedef struct { float a; float4 b; } pair;
kernel void scale(global const float *x, global float *y, const float factor, local float *tile)
{
    size_t i = get_global_id(0);
    float sum = x[i];
    for (int k = 0; k < 200; ++k)
        sum = sum * factor + 1.0f;
    y[i] = sum;
}
kernel void rows(global const int *begin, global const int *value, global int *out)
{
    int sum = 0;
    for (int k = begin[get_global_id(0)]; k < begin[get_global_id(0) + 1]; ++k)
        sum += value[k];
    out[get_global_id(0)] = sum;
}
kernel void shift(global float *y, const pair p, const float2 c, const real by)
{
    y[get_global_id(0)] += p.b.x * c.y * by;
}
#ifdef TURNS
kernel void turn(global float *y)
{
    for (int k = 0; k < TURNS; ++k)
        y[get_global_id(0)] *= 0.5f;
}
#endif
"""
ITEMS, LOCAL = 1 << 16, 64
ONES = np.ones(ITEMS, np.float32)
NOTHING_RUNS = kernelcast.PredictorOptions(settings=kernelcast.EstimateSettings(samples=False))


class Program:
    """A program's own objects on one device."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.queue = queue
        self.program = cl.Program(queue.context, SOURCE).build()
        self.x, self.y = put(queue, ONES), put(queue, ONES)

    def list_arguments(self, factor: float = 0.5) -> list[Any]:
        return [self.x, self.y, np.float32(factor), cl.LocalMemory(4 * LOCAL)]

    def launch(
        self,
        name: str = "scale",
        args: Sequence[Any] | None = None,
        items: int = ITEMS,
        program: cl.Program | None = None,
        **more: object,
    ) -> kernelcast.Launch:
        """Make a launch, of `scale` unless told."""
        args = self.list_arguments() if args is None else args
        local = more.pop("local_size", (LOCAL,))
        program = program or self.program
        return make_launch(program, name, (items,), local, args, self.queue, **more)


@pytest.fixture(scope="module")
def own(queue: cl.CommandQueue) -> Program:
    return Program(queue)


@pytest.fixture(scope="module")
def first() -> Program:
    """Build the kernels on the first device, for what no device changes."""
    return Program(make_queue(next(iter(list_devices()))))


def key_of(estimate: kernelcast.Estimate) -> str:
    """Tell launches apart as observations are."""
    assert estimate.identity is not None
    return estimate.identity.key


def test_a_launch_is_sampled_once_and_then_known(own: Program) -> None:
    """Samples answer first, memory again, and what was observed in this and any later program."""
    with kernelcast.Predictor() as predictor:
        sampled = predictor.estimate(own.launch())
        (device,) = [one for one in predictor.devices() if one.id == sampled.device_id]
        assert sampled.device == device.name
        assert (sampled.kernel, sampled.coverage) == ("scale", 0.9)
        assert (sampled.ndrange.global_size, sampled.ndrange.local_size) == ((ITEMS,), (LOCAL,))
        assert sampled.tier in {"linear", "hybrid"}
        assert 0 < sampled.low <= sampled.seconds <= sampled.high < math.inf
        assert 0 < sampled.sampled_work_groups < ITEMS // LOCAL
        assert sampled.sampling_seconds > 0
        assert all(0 < seconds < math.inf for seconds in sampled.estimates_s.values())
        assert "samples" in {piece.kind for piece in sampled.explain().pieces}
        assert predictor.estimate(own.launch()).interval is sampled.interval
        before = sys.getrefcount(own.x)
        predictor.estimate(own.launch(items=ITEMS // 2))
        gc.collect()
        held = sys.getrefcount(own.x) - before
        assert held == 0  # answers keep no buffer
        args = [put(own.queue, 2 * ONES), put(own.queue, ONES), *own.list_arguments()[2:]]
        assert predictor.estimate(own.launch(args=args)).interval is sampled.interval
        assert key_of(predictor.estimate(own.launch(args=own.list_arguments(0.25)))) != key_of(
            sampled
        )
        predictor.observe(own.launch(), 1.3 * sampled.seconds, is_first=False, slowdown=1)
        assert predictor.estimate(own.launch()).seconds > sampled.seconds
        for share in (1.3, 1.31, 1.29):
            kernelcast.observe(sampled, share * sampled.seconds, is_first=False, slowdown=1)
    with kernelcast.Predictor() as predictor:
        known = predictor.estimate(own.launch())
        assert known.tier == "history"
        assert known.seconds == pytest.approx(1.3 * sampled.seconds, rel=0.03)
        assert known.low < 1.3 * sampled.seconds < known.high
    args = own.list_arguments()
    later = kernelcast.estimate(
        cl.Kernel(own.program, "scale"), (ITEMS,), (LOCAL,), args, queue=own.queue
    )
    assert later.tier == "history"
    assert later.seconds == pytest.approx(known.seconds, rel=0.03)


def test_an_observation_costs_other_launches_no_samples(own: Program) -> None:
    """They are answered by the samples that were taken before."""

    def ask(items: int) -> kernelcast.Estimate:
        kernel, args = cl.Kernel(own.program, "scale"), own.list_arguments()
        return kernelcast.estimate(kernel, (items,), (LOCAL,), args, queue=own.queue)

    def list_moments(estimate: kernelcast.Estimate) -> list[object]:
        return [one.measured_at for one in estimate.list_pieces() if one.kind == "samples"]

    observed, other = ask(ITEMS), ask(ITEMS // 2)
    kernelcast.observe(observed, observed.seconds, is_first=False, slowdown=1)
    assert list_moments(ask(ITEMS // 2)) == list_moments(other) != []


def test_arguments_of_every_kind_are_taken(own: Program) -> None:
    """Arrays, parts of buffers, vectors, structures, local memory, offsets, options, a binary."""
    queue, rest = own.queue, own.list_arguments()[2:]
    whole = cl_array.to_device(queue, np.ones(2 * ITEMS, np.float32))
    pool = MemoryPool(ImmediateAllocator(queue))
    pooled = cl_array.zeros(queue, ITEMS, np.float32, allocator=pool)
    parent = put(queue, ONES)
    part = parent.get_sub_region(0, 2 * ITEMS)
    parent.release()
    del parent
    pair = (cl.cltypes.make_float2(1, 2), np.float32(1))
    structure = np.zeros((), [("a", "f4"), ("pad", "f4", 3), ("b", "f4", 4)])[()]
    launches = [
        own.launch(args=[whole[ITEMS:], pooled, *rest]),
        own.launch(args=[part, pooled, *rest], items=ITEMS // 2),
        own.launch("shift", [own.y, structure, *pair]),
        own.launch(items=ITEMS // 2, global_offset=(ITEMS // 2,)),
        own.launch(local_size=None),
    ]
    built = [
        cl.Program(queue.context, SOURCE).build(options=[f"-DTURNS={turns}"]) for turns in (9, 99)
    ]
    launches += [
        own.launch("turn", [own.y], program=program, build_options=options)
        for program, options in zip(built, ("-DTURNS=9", ["-DTURNS=99"]), strict=True)
    ]
    binaries = own.program.get_info(cl.program_info.BINARIES)
    binary = cl.Program(queue.context, [queue.device], binaries).build()
    launches.append(own.launch(program=binary, source=SOURCE, build_options="", items=ITEMS // 4))
    with kernelcast.Predictor() as predictor:
        entries = predictor.estimate_many(launches)
        assert [entry.error for entry in entries] == [None] * len(launches)
        keys = [key_of(entry.estimate) for entry in entries if entry.estimate]
        assert len(set(keys)) == len(launches)
        chosen = entries[4].estimate
        assert chosen is not None
        assert chosen.ndrange.local_size is not None
        with pytest.raises(kernelcast.InputError, match=r"holds no source.*source=\.\.\."):
            predictor.estimate(own.launch(program=binary))
        with pytest.raises(kernelcast.InputError, match="leaves the buffer"):
            predictor.estimate(own.launch(global_offset=(LOCAL,)))
        view = own.launch(args=[whole[1:], pooled, *rest], items=ITEMS // 8)
        begins_anywhere = "rusticl" in queue.device.platform.name
        refusal = pytest.raises(kernelcast.InputError, match=r"byte 4 of its buffer.*array\.copy")
        with contextlib.nullcontext() if begins_anywhere else refusal:
            predictor.estimate(view)
    assert (read(queue, part, ONES[: ITEMS // 2]) == 1).all()
    assert (whole.get() == 1).all()
    assert (pooled.get() == 0).all()
    assert (read(queue, own.x, ONES) == 1).all()


IMAGES = """
constant sampler_t NEAREST = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void invert(read_only image2d_t from, write_only image2d_t to, sampler_t given)
{
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(to, at, 1.0f - read_imagef(from, given, at));
}
kernel void invert_layers(read_only image2d_array_t from, write_only image2d_array_t to)
{
    int4 at = (int4)(get_global_id(0), get_global_id(1), 0, 0);
    write_imagef(to, at, 1.0f - read_imagef(from, NEAREST, at));
}
kernel void mark(write_only image1d_t to)
{
    write_imagef(to, get_global_id(0), 1.0f);
}
"""


def test_images_are_taken_and_left_as_they_were(queue: cl.CommandQueue) -> None:
    """Samples write to copies of images; one that cannot be copied is refused before."""
    if not queue.device.image_support:
        pytest.skip("a device without images")
    program = cl.Program(queue.context, IMAGES).build()
    flags = cl.mem_flags.READ_WRITE
    layout = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNORM_INT8)
    nearest = cl.Sampler(queue.context, False, cl.addressing_mode.CLAMP, cl.filter_mode.NEAREST)
    with kernelcast.Predictor() as predictor:
        for name, shape, more in (
            ("invert", (512, 512), [nearest]),
            ("invert_layers", (512, 512, 2), []),
        ):
            before = np.random.default_rng(1).integers(0, 256, (*shape[::-1], 4), dtype=np.uint8)
            image = cl.create_image(
                queue.context, flags | cl.mem_flags.COPY_HOST_PTR, layout, shape=shape,
                hostbuf=before, is_array=len(shape) > 2,
            )  # fmt: skip
            args = [image, image, *more]
            estimate = predictor.estimate(
                make_launch(program, name, shape[:2], (16, 16), args, queue)
            )
            assert estimate.sampled_work_groups > 0
            after = np.empty_like(before)
            cl.enqueue_copy(queue, after, image, origin=(0, 0, 0), region=(*shape, 1)[:3])
            assert np.array_equal(after, before)
        line = cl.create_image(queue.context, flags, layout, shape=(512,))
        with pytest.raises(kernelcast.InputError, match="cannot be copied; give a 2-D or 3-D"):
            predictor.estimate(make_launch(program, "mark", (512,), (16,), [line], queue))


Change = Callable[[list[Any]], Any]
WRONG_ARGUMENTS: list[tuple[Change, str]] = [
    (lambda right: right[:2], "2 arguments given, 4 expected"),
    (lambda right: [*right, np.int32(1)], "5 arguments given, 4 expected"),
    (lambda right: right[0], "arguments: Buffer given; give a sequence"),
    (lambda _: "buffer", "arguments: str given; give a sequence"),
    (lambda right: [*right[:3], None], "NoneType given; give a pyopencl.LocalMemory"),
    (lambda right: [*right[:3], right[0]], "Buffer given; give a pyopencl.LocalMemory"),
    (lambda right: [right[3], *right[1:]], "LocalMemory given; give a pyopencl.Buffer"),
    (lambda right: [[1.0], *right[1:]], "list given; give a pyopencl.Buffer"),
    (lambda right: [np.zeros(4), *right[1:]], "ndarray given; give a .*Buffer"),
    (lambda right: [*right[:2], None, right[3]], "NoneType given; give a numpy.float32"),
    (lambda right: [*right[:2], 2.5, right[3]], "float given; give a numpy.float32"),
    (lambda right: [*right[:2], np.float64(5), right[3]], "float64 given; give a numpy.float32"),
    (lambda right: [*right[:2], np.int32(5), right[3]], "int32 given; .*numpy.float32"),
    (lambda right: [*right[:2], right[0], right[3]], "Buffer given; give a numpy.float32"),
]
WRONG_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"kernel": SOURCE}, r"kernel: str given; give a pyopencl\.Kernel"),
    ({"queue": None}, r"queue: NoneType given; give a pyopencl\.CommandQueue"),
    ({"global_size": ITEMS}, "global size.*sequence of whole numbers"),
    ({"global_size": (0.5,)}, "global size.*sequence of whole numbers"),
    ({"local_size": LOCAL}, "local size.*sequence of whole numbers"),
    ({"global_offset": np.array([0.5])}, "global offset"),
    ({"budget": "much"}, "budget"),
    ({"coverage": None}, "coverage"),
    ({"coverage": 1.5}, "coverage 1.5: give a share between 0 and 1"),
    ({"seed": -1}, "seed"),
    ({"source": SOURCE.encode()}, "source: bytes given; give OpenCL C as a str"),
]


def test_what_does_not_fit_is_named(first: Program) -> None:
    """What was given, what was expected and what to give; a right launch is answered next."""
    context = first.queue.context
    right: dict[str, Any] = {
        "kernel": cl.Kernel(first.program, "scale"), "global_size": (ITEMS,),
        "local_size": (LOCAL,), "args": first.list_arguments(), "queue": first.queue,
    }  # fmt: skip
    other = cl.Context([first.queue.device])
    foreign = cl.Buffer(other, cl.mem_flags.READ_WRITE, 4 * ITEMS)
    wrong: list[tuple[dict[str, Any], str]] = [
        *(({"args": change(first.list_arguments())}, text) for change, text in WRONG_ARGUMENTS),
        *WRONG_OPTIONS,
        ({"kernel": first.program}, r"kernel: \w+ given; give a pyopencl\.Kernel"),
        ({"queue": context}, r"queue: Context given"),
        ({"queue": cl.CommandQueue(other)}, "the queue belongs to another context"),
        ({"args": [foreign, *first.list_arguments()[1:]]}, "a Buffer of another context"),
    ]
    for given, complaint in wrong:
        with pytest.raises(kernelcast.InputError, match=complaint):
            kernelcast.estimate(**{**right, **given})
    two, by = cl.cltypes.make_float2(1, 2), np.float32(1)
    with pytest.raises(kernelcast.DeviceError, match=r"local size 48 does not divide .*; pad"):
        kernelcast.estimate(**{**right, "local_size": (48,), "source": SOURCE, "build_options": ""})
    structure = first.launch("shift", [first.y, np.zeros(1, "f4,")[0], two, by])
    pair = first.launch("shift", [first.y, np.zeros(8, "f4").view("V32")[0], by, by])
    with kernelcast.Predictor() as predictor:
        with pytest.raises(kernelcast.InputError, match="4 bytes given; give all 32"):
            predictor.estimate(structure)
        with pytest.raises(kernelcast.InputError, match=r"float32 given; .*vector of 2"):
            predictor.estimate(pair)
        with pytest.raises(kernelcast.InputError, match="leave the device out"):
            predictor.estimate(first.launch(), "other-device")
        for seconds in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(kernelcast.InputError):
                predictor.observe(first.launch(), seconds)
    with pytest.raises(kernelcast.InputError):
        kernelcast.Predictor(methods=[])
    assert kernelcast.estimate(**right).seconds > 0


def test_contents_count_where_they_decide_the_work(first: Program) -> None:
    """Longer rows in the same buffers are another launch, other results are not."""
    begin = np.arange(ITEMS + 1, dtype=np.int32)
    contents = [begin, np.ones(4 * ITEMS, np.int32), np.zeros(ITEMS, np.int32)]
    buffers = [put(first.queue, content) for content in contents]
    launch = first.launch("rows", buffers)
    with kernelcast.Predictor() as predictor:
        short = predictor.estimate(launch)
        cl.enqueue_copy(first.queue, buffers[2], contents[2] + 1)
        assert predictor.estimate(launch).interval is short.interval
        cl.enqueue_copy(first.queue, buffers[0], 4 * begin)
        assert key_of(predictor.estimate(launch)) != key_of(short)
        cl.enqueue_copy(first.queue, buffers[0], begin)
        assert key_of(predictor.estimate(launch)) == key_of(short)
    with kernelcast.Predictor() as predictor:
        again = [put(first.queue, content) for content in contents]
        assert key_of(predictor.estimate(first.launch("rows", again))) == key_of(short)


def test_every_tier_answers_in_its_turn(home: Path, problem: Path, device_ids: list[str]) -> None:
    """Where nothing may run: a calibrated device's model, other sizes, history; else samples."""
    device_id = device_ids[0]

    def read_size(items: int) -> object:
        return kernelcast.read_problem(problem, parameters={"N": items})

    with (
        kernelcast.Predictor([device_id], options=NOTHING_RUNS) as predictor,
        pytest.raises(kernelcast.DeviceError, match="calibrate"),
    ):
        predictor.estimate(read_size(ITEMS), device_id)
    write_calibration(home, device_id)
    with kernelcast.Predictor([device_id], options=NOTHING_RUNS) as predictor:
        modelled = predictor.estimate(read_size(ITEMS), device_id)
        assert modelled.tier == "analytic"
        assert modelled.limiter
        assert modelled.sampled_work_groups == 0
        assert 0 < modelled.low <= modelled.seconds <= modelled.high
        for items in (ITEMS // 4, ITEMS // 2, 4 * ITEMS):
            other = predictor.estimate(read_size(items), device_id)
            for share in (1.2, 1.21, 1.19):
                seconds = share * modelled.seconds * items / ITEMS
                predictor.observe(other, seconds, is_first=False, slowdown=1)
        sized = predictor.estimate(read_size(2 * ITEMS), device_id)
        assert sized.tier == "sizes"
        assert sized.low < 2.4 * modelled.seconds < sized.high
        assert predictor.estimate(read_size(4 * ITEMS), device_id).tier == "history"
    settings = kernelcast.EstimateSettings(uses_history=False, uses_models=False)
    options = kernelcast.PredictorOptions(settings=settings)
    with kernelcast.Predictor([device_id], options=options) as predictor:
        sampled = predictor.estimate(read_size(2 * ITEMS), device_id)
        assert sampled.tier == "linear"
        assert sampled.sampled_work_groups > 0
        assert "analytic" in sampled.estimates_s


def test_problem_files_are_answered_by_every_device(
    problem: Path, device_ids: list[str], tmp_path: Path
) -> None:
    """An answer for each, measured where that is asked, or its reason; all of it as a table."""
    stages: list[str] = []
    settings = kernelcast.EstimateSettings(measure=True, measured_runs=3)
    answers = kernelcast.estimate_problem(
        problem, parameters={"N": 2 * ITEMS}, settings=settings, report=stages.append
    )
    assert [answer.device_id for answer in answers] == device_ids
    assert stages
    for answer in answers:
        estimate = answer.estimate
        assert estimate is not None, answer.error
        assert estimate.ndrange.global_size == (2 * ITEMS,)
        assert estimate.measurement is not None
        assert len(estimate.measurement.durations_s) == 3
        predicted_s = estimate.seconds * estimate.measurement.slowdown
        assert estimate.error == pytest.approx(predicted_s / estimate.measurement.seconds - 1)
        assert answer.to_dict()["measured_runs"] == 3
        assert "<svg" in estimate._repr_html_()
    bad = tmp_path / "bad.yaml"
    bad.write_text(problem.read_text().replace("y[i] = sum;", "y[i] = undeclared;"))
    with pytest.raises(kernelcast.InputError, match=r"bad.yaml.*: error: .*undeclared"):
        kernelcast.estimate_problem(bad, devices=device_ids[:1])
    table = kernelcast.to_frame(answers)
    assert list(table["device_id"]) == device_ids
    assert table["seconds"].notna().all()
    assert table["error_message"].isna().all()
    assert {"low_s", "high_s", "tier", "linear_s", "measured_s"} <= set(table)
    with pytest.raises(kernelcast.KernelcastError, match=device_ids[0]):
        kernelcast.estimate_problem(problem, devices=["no-such-device"])
    with pytest.raises(kernelcast.InputError, match="M"):
        kernelcast.estimate_problem(problem, parameters={"M": 3})


def test_problems_and_launches_are_compared(
    first: Program, problem: Path, device_ids: list[str]
) -> None:
    """An entry for each, with its costs or its error; the fastest device, and how sure that is."""
    few = dataclasses.replace(first.launch(), args=first.list_arguments()[:2])
    device_ids = device_ids[:2]
    with kernelcast.Predictor(device_ids) as predictor:
        asked = kernelcast.read_problem(problem)
        entries = predictor.estimate_many([asked, first.launch(), few])
        own_id = entries[-1].device_id
        assert [entry.device_id for entry in entries] == [*device_ids, own_id, own_id]
        wrong = entries[-1]
        assert isinstance(wrong.error, kernelcast.InputError)
        assert wrong.estimate is None
        for entry in entries[:-1]:
            assert entry.error is None
            assert entry.kernel_s is not None
        problems = entries[: len(device_ids)]
        for entry in problems:
            assert entry.launch_s is not None
            assert entry.to_device_s is None  # not calibrated
        fastest = predictor.fastest(problems)
        times = {entry.device_id: entry.kernel_s for entry in problems}
        assert times[fastest.entry.device_id] == min(times.values())
        assert str(fastest).startswith(f"{fastest.entry.device_id} (by kernel alone")
        placement = fastest.placement
        assert (placement.device, placement.start_s) == (fastest.entry.device_id, 0.0)
        assert placement.end_s == fastest.seconds
        assert 0.5 / len(problems) < placement.confidence <= 1.0

        async def ask_at_once() -> list[kernelcast.Estimate]:
            return await asyncio.gather(*(predictor.aestimate(asked, one) for one in device_ids))

        awaited = {one.device_id: one for one in asyncio.run(ask_at_once())}
        assert {*awaited} == {*device_ids}
        assert "no answer from" in str(predictor.fastest([entries[-2], wrong]))
        one, other = problems[0].estimate, problems[-1].estimate
        assert one is not None
        assert other is not None
        assert predictor.faster(one, one) == pytest.approx(0.5)
        sure = predictor.faster(one, other)
        assert sure + predictor.faster(other, one) == pytest.approx(1)
        told_s = one.expected.seconds, other.expected.seconds
        assert (sure > 0.5) is (told_s[0] < told_s[1]) or told_s[0] == told_s[1]


def test_threads_share_a_predictor(first: Program) -> None:
    """All of them get an answer, the same for the same launch, while others observe."""
    launches = [first.launch(args=first.list_arguments(share)) for share in (0.1, 0.2, 0.3)]
    with kernelcast.Predictor() as predictor, ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(predictor.estimate, [*launches, *launches, *launches]))
        assert len({key_of(answer) for answer in answers}) == len(launches)
        seconds = [answer.seconds for answer in answers[:3]]
        list(threads.map(predictor.observe, answers[:3], seconds))
        predictor.flush()
        assert all(predictor.estimate(launch).seconds > 0 for launch in launches)
