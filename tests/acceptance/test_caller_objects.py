"""A program's own pyopencl objects that are gone, foreign, or share memory with one another."""

import gc
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest
from pyopencl.elementwise import ElementwiseKernel
from pyopencl.reduction import ReductionKernel
from pyopencl.tools import ImmediateAllocator, MemoryPool, parse_arg_list

import kernelcast
from support.device_queues import list_devices, make_queue, put, read

pytestmark = pytest.mark.device

SOURCE = """
#ifndef STEPS
#define STEPS 4
#endif
kernel void add(global float *y, global const float *x)
{
    for (int k = 0; k < STEPS; ++k)
        y[get_global_id(0)] += x[get_global_id(0)];
}
kernel void look(read_only image2d_t image, sampler_t sampler, global float *y)
{
    y[get_global_id(0)] = read_imagef(image, sampler, (int2)(get_global_id(0) & 15, 0)).x;
}
kernel void mark(volatile global int *a, volatile global const int *b, const int ahead)
{
    const int i = get_global_id(0);
    for (int k = 0; k < 200000 && b[i] == 0; ++k)
        a[i + ahead] = k + 1;
}
"""
PLUS = """
kernel void plus(
    global float *y, const long y_offset, global const float *x, const long x_offset, const long n)
{
    y += y_offset / sizeof(float);
    x += x_offset / sizeof(float);
    for (long i = get_global_id(0); i < n; i += get_global_size(0))
        y[i] = x[i] + 1;
}
"""
ITEMS, LOCAL, PART = 1 << 12, 64, 1 << 10
ONES = np.ones(ITEMS, np.float32)
FLAGS = cl.mem_flags.READ_WRITE
PIXEL = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)


class Program:
    """A program's own objects on one device."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.queue, self.context = queue, queue.context
        self.program = cl.Program(queue.context, SOURCE).build()
        self.x, self.y = put(queue, ONES), put(queue, ONES)

    def launch(
        self,
        *args: object,
        name: str = "add",
        kernel: cl.Kernel | None = None,
        queue: cl.CommandQueue | None = None,
        **more: Any,  # noqa: ANN401 - of `kernelcast.Launch`
    ) -> kernelcast.Launch:
        kernel = kernel or cl.Kernel(self.program, name)
        return kernelcast.Launch(
            kernel, (ITEMS,), (LOCAL,), args, queue=queue or self.queue, **more
        )


def estimate_alone(launch: kernelcast.Launch) -> kernelcast.Estimate:
    return kernelcast.estimate(
        launch.kernel, launch.global_size, launch.local_size, launch.args, queue=launch.queue
    )


def refuse_everywhere(
    predictor: kernelcast.Predictor, launch: kernelcast.Launch, complaint: str
) -> None:
    """Have every entry that takes a launch refuse it."""
    entries: list[Callable[[kernelcast.Launch], object]] = [
        predictor.estimate,
        partial(predictor.estimate, anew=True),
        lambda launch: predictor.observe(launch, 1e-3),
        predictor.history,
        estimate_alone,
        lambda launch: kernelcast.observe(launch, 1e-3),
    ]
    for ask in entries:
        with pytest.raises(kernelcast.InputError, match=complaint):
            ask(launch)
    (entry,) = predictor.estimate_many([launch])
    with pytest.raises(kernelcast.InputError, match=complaint):
        raise entry.error or AssertionError(entry)


def release_memory() -> None:
    """Release memory of every kind that is an argument, before anything was asked and after."""
    for name in list_devices():
        own = Program(make_queue(name))
        queue, context = own.queue, own.context
        pool = MemoryPool(ImmediateAllocator(queue))
        arrays = [cl_array.to_device(queue, ONES), cl_array.zeros(queue, 2 * ITEMS, np.float32),
                  cl_array.zeros(queue, ITEMS, np.float32, allocator=pool)]  # fmt: skip
        whole = cl.Buffer(context, FLAGS, 8 * ITEMS)
        part = whole.get_sub_region(4 * ITEMS, 4 * ITEMS)
        cases = [(part, part), *((one, one.base_data) for one in arrays)]
        cases[2] = arrays[1][ITEMS:], arrays[1].base_data
        with kernelcast.Predictor() as predictor:
            launch = own.launch(own.y, own.x)
            assert predictor.estimate(launch) is predictor.estimate(launch)
            own.x.release()
            complaint = (
                r"argument 1 \(global const float ?\* ?x\): .*Buffer given whose .* released"
            )
            refuse_everywhere(predictor, launch, complaint)
            for given, memory in cases:
                memory.release()
                pool.free_held()
                with pytest.raises(kernelcast.InputError, match=complaint):
                    predictor.estimate(own.launch(own.y, given))
            if queue.device.image_support:
                flags, mode = cl.mem_flags.READ_ONLY, cl.addressing_mode.CLAMP
                image = cl.create_image(context, flags, PIXEL, shape=(16, 16))
                sampler = cl.Sampler(context, False, mode, cl.filter_mode.NEAREST)
                image.release()
                with pytest.raises(kernelcast.InputError, match=r"argument 0 .* Image .* released"):
                    predictor.estimate(own.launch(image, sampler, own.y, name="look"))
            assert predictor.estimate(own.launch(own.y, put(queue, ONES))).seconds > 0


def mix_contexts() -> None:
    """Give an object of another context or platform, while that is there and when it is gone."""
    refusals: list[tuple[str, Callable[[cl.CommandQueue], dict[str, Any]]]] = [
        ("argument 1 .*a Buffer of another context", lambda queue: {"x": put(queue, ONES)}),
        (
            "the queue belongs to another context",
            lambda queue: {"kernel": cl.Kernel(cl.Program(queue.context, SOURCE).build(), "add")},
        ),
        ("queue.* context", lambda queue: {"queue": queue}),
    ]
    for name in list_devices():
        own = Program(make_queue(name))
        with kernelcast.Predictor() as predictor:
            for device in list_devices().values():
                for complaint, make in refusals:
                    context = cl.Context([device])
                    given = make(cl.CommandQueue(context))
                    launch = own.launch(own.y, given.pop("x", own.x), source=SOURCE, **given)
                    for _ in ("there", "gone"):
                        with pytest.raises(kernelcast.InputError, match=complaint):
                            predictor.estimate(launch)
                        context = None  # type: ignore[assignment]  # it goes
                        gc.collect()


@pytest.mark.parametrize("trial", [release_memory, mix_contexts])
def test_objects_that_cannot_be_used_are_named(
    trial: Callable[[], None], session_home: Path
) -> None:
    """The message says which, at every entry; a driver that was asked would end the process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, trial.__name__], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_queue_that_was_left_still_names_its_device(queue: cl.CommandQueue) -> None:
    """A launch is answered with a queue whose `with` block has ended, as nothing runs on it."""
    own = Program(queue)
    with cl.CommandQueue(queue.context) as left:
        pass
    with kernelcast.Predictor() as predictor:
        assert predictor.estimate(own.launch(own.y, own.x, queue=left)).seconds > 0


def test_a_kernel_whose_program_is_gone_works_by_its_source(queue: cl.CommandQueue) -> None:
    """Also one that pyopencl has generated; without a source, the message says what to give."""
    own, context = Program(queue), queue.context
    vectors = parse_arg_list("float *y, const float *x", with_offset=True)
    plus, _ = ElementwiseKernel(context, vectors, "y[i] = x[i] + 1", "plus").get_kernel(False)
    total = ReductionKernel(context, np.float32, "0", "a+b", "y[i]", vectors[:1]).stage_1_inf
    zero, one, count = np.int64(0), np.int64(1), np.int64(ITEMS)
    launches = [
        (cl.Kernel(cl.Program(context, SOURCE).build(), "add"), SOURCE, [own.y, own.x]),
        (plus, PLUS, [own.y, zero, own.x, zero, count]),
        (total.kernel, total.source,
         [own.y, zero, own.x, zero, zero, one, count, np.uint32(1), count]),
    ]  # fmt: skip
    del total
    gc.collect()
    refused = "its program is gone.* or give the OpenCL C as source=.* as build_options="
    headers = ["-I", str(Path(cl.__file__).parent / "cl")]  # as pyopencl builds every program
    with kernelcast.Predictor() as predictor:
        for kernel, source, args in launches:
            if has_forgotten(kernel, cl.kernel_info.PROGRAM):
                with pytest.raises(kernelcast.InputError, match=refused):
                    predictor.estimate(own.launch(*args, kernel=kernel))
            else:
                assert predictor.estimate(own.launch(*args, kernel=kernel)).seconds > 0
            given = {"kernel": kernel, "source": source, "build_options": headers}
            first = predictor.estimate(own.launch(*args, **given))
            assert first.seconds > 0
            assert predictor.estimate(own.launch(*args, **given)).interval == first.interval
        kernel, source, args = launches[0]
        few = predictor.estimate(own.launch(*args, kernel=kernel, source=source))
        many = predictor.estimate(
            own.launch(*args, kernel=kernel, source=source, build_options="-DSTEPS=4096")
        )
        assert many.seconds > few.seconds


def has_forgotten(thing: cl.Kernel | cl.Buffer, info: int) -> bool:
    """Tell whether a driver has forgotten what a kernel or a part of a buffer came from."""
    try:
        thing.get_info(info)
    except cl.LogicError:
        return True
    return False


def test_arguments_that_share_memory_are_told_apart(queue: cl.CommandQueue) -> None:
    """Each way to overlap is a launch of its own, run on copies that overlap as much."""
    own = Program(queue)
    zeros = np.zeros(4 * ITEMS, np.int32)
    whole, other = put(queue, zeros), put(queue, zeros)

    def cut(memory: cl.Buffer, first: int) -> cl.Buffer:
        return memory.get_sub_region(4 * first, 4 * (ITEMS + PART))

    apart = cut(whole, 0), cut(whole, 2 * ITEMS), 0
    overlapping = [
        (cut(whole, 0), cut(whole, PART), PART),
        (cut(whole, 0), cut(whole, 0), 0),
        (whole, cut(whole, PART), PART),
        (cut(whole, 0), whole, 0),
        (whole, whole, 0),
    ]

    def mark(a: cl.Buffer, b: cl.Buffer, ahead: int) -> kernelcast.Launch:
        return own.launch(a, b, np.int32(ahead), name="mark")

    with kernelcast.Predictor() as predictor:
        slow = predictor.estimate(mark(*apart))
        for factor in (1.01, 1.02, 1.03):
            predictor.observe(mark(*apart), slow.seconds * factor, is_first=False, slowdown=1)
        quick = [predictor.estimate(mark(*one)) for one in overlapping]
        # A work-item ends its loop as soon as it sees what it has written.
        assert all(10 * one.seconds < slow.seconds for one in quick)
        keys = [one.identity.key for one in (slow, *quick) if one.identity]
        assert len(set(keys)) == 1 + len(overlapping)
        later = [predictor.estimate(mark(*one)) for one in overlapping]
        assert [one.interval for one in later] == [one.interval for one in quick]
        parts = cut(other, 0), cut(other, PART), PART
        again = predictor.estimate(mark(*parts))
        assert again.identity is not None
        assert again.identity.key == keys[1]
        alike = predictor.estimate(mark(cut(other, PART), cut(whole, 0), 0))
        assert alike.identity is not None
        assert alike.identity.key == keys[0]
        assert str(alike.tier) == "history"
        other.release()
        if has_forgotten(parts[0], cl.mem_info.ASSOCIATED_MEMOBJECT):
            with pytest.raises(kernelcast.InputError, match=r"0 and 1: parts that .*; keep that"):
                predictor.estimate(mark(*parts))
        else:
            assert predictor.estimate(mark(*parts)).interval is again.interval
    assert not read(queue, whole, zeros).any()


if __name__ == "__main__":
    {one.__name__: one for one in (release_memory, mix_contexts)}[sys.argv[1]]()
