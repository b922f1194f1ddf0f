"""Nothing that is asked about harms the asker: not its buffers, its process or its machine."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import kernelcast
from support.device_queues import list_devices, make_launch, make_queue, put, read
from support.service_attacks.attacks import ON_DEVICES, list_attacks
from support.service_attacks.target import serve_targets

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]

SOURCE = """\
struct S { int v[4]; };
kernel void update(global int *a, global const int *b, global int *c)
{ size_t i = get_global_id(0); a[i] += b[i] + (int)get_group_id(0); c[i] = a[i]; }
kernel void lanes(global int4 *a, global const int *b, global int8 *c)
{ size_t i = get_global_id(0); a[i / 4].x = 1; c[i / 8].s13 = (int2)(b[i]); }
kernel void parts(global struct S *a, global const int *b, global int (*c)[4])
{ size_t i = get_global_id(0); a[i / 4].v[i % 4] = b[i]; c[i / 4][i % 4] = 1; }
kernel void calls(global int *a, global const int *b, global int *c)
{ size_t i = get_global_id(0); atomic_inc(a + i); vstore4((int4)(b[i]), i / 4, c); }
kernel void scatter(global int *a, global const int *b, global int *c)
{ size_t i = get_global_id(0); a[b[i] & 8191] = i; c[(i * 7) & 8191] = 1; }
kernel void once(global int *a, global int *b, global int *c)
{
    size_t i = get_global_id(0);
    if (a[i] != 1) {
        int sum = b[i];
        for (int k = 0; k < 20000; ++k)
            sum = sum * 3 + k;
        b[i] = sum;
        c[i] += 1;
    }
    a[i] = 1;
}
kernel void work(global int *a, global int *b, const int n)
{
    size_t i = get_global_id(0);
    int sum = b[i];
    for (int k = 0; k < n; ++k)
        sum = sum * 3 + k;
    a[i] += sum;
    b[i] = sum;
}
kernel void guarded(global float *y, global const float *x, const int n, local float *t)
{
    const int i = get_global_id(0);
    if (i < n)
        y[i] += x[i];
}
kernel void staged(global float *y, local float *t)
{
    const int l = get_local_id(0);
    t[l] = y[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[get_global_id(0)] = t[l ^ 1];
}
kernel void drain(volatile global int *head, global int *a, const int n)
{ int i; while ((i = atomic_inc(head)) < n) a[i] *= 2; }
"""
ITEMS, LOCAL = 8192, 32


@pytest.fixture(scope="module")
def program(queue: cl.CommandQueue) -> cl.Program:
    """Build the kernels on each device in turn."""
    return cl.Program(queue.context, SOURCE).build()


class Guarded:
    """Buffers that remember what they held."""

    def __init__(self, queue: cl.CommandQueue, count: int = 3) -> None:
        self._queue = queue
        draw = np.random.default_rng(count)
        self.contents = [draw.integers(-(2**31), 2**31, ITEMS, np.int32) for _ in range(count)]
        self.buffers = [put(queue, content) for content in self.contents]

    def list_changed(self) -> list[int]:
        """Name the buffers that are not bit for bit what they were."""
        return [
            place
            for place, (buffer, content) in enumerate(zip(self.buffers, self.contents, strict=True))
            if not np.array_equal(read(self._queue, buffer, content), content)
        ]


def test_buffers_are_left_bit_for_bit(queue: cl.CommandQueue, program: cl.Program) -> None:
    """After samples and whole runs, whatever a kernel writes and however it names the place."""
    for name in ("update", "lanes", "parts", "calls", "scatter", "once"):
        own = Guarded(queue)
        kernel = cl.Kernel(program, name)
        estimate = kernelcast.estimate(
            kernel, (ITEMS,), (LOCAL,), own.buffers, queue=queue, measure=True
        )
        assert estimate.sampled_work_groups > 0, name
        assert own.list_changed() == [], name
        if name == "once":  # whole runs find work to do, although others have done it before
            assert estimate.measurement is not None
            assert estimate.measurement.seconds > estimate.seconds / 30
    own = Guarded(queue, 2)
    first, other = own.buffers
    half = first.get_sub_region(0, 2 * ITEMS)
    with kernelcast.Predictor() as predictor:
        for args in ([first, first, other], [first, half, other]):
            size = args[1].size // 4
            launch = make_launch(program, "update", (size,), (LOCAL,), args, queue)
            assert predictor.estimate(launch).seconds > 0
            assert own.list_changed() == []


class StopError(Exception):
    """A program's own error, from within its own callback."""


def test_buffers_are_left_after_an_error(queue: cl.CommandQueue, program: cl.Program) -> None:
    """Wherever the asker's own callback fails, and where the next launch is refused."""
    own = Guarded(queue)
    launch = make_launch(program, "once", (ITEMS,), (LOCAL,), own.buffers, queue)
    settings = kernelcast.EstimateSettings(measure=True, measured_runs=2)
    options = kernelcast.PredictorOptions(settings=settings)
    stopped: list[str] = []

    def fail(stage: str) -> None:
        told.append(stage)
        if len(told) > len(stopped):
            stopped.append(stage)
            raise StopError

    with kernelcast.Predictor(options=options) as predictor:
        estimate = None
        while estimate is None:  # each try gets one stage further
            told: list[str] = []
            with contextlib.suppress(StopError):
                estimate = predictor.estimate(launch, anew=True, report=fail)
            assert own.list_changed() == [], stopped
    assert len(stopped) >= 2
    assert estimate.measurement is not None


def interrupt() -> None:
    """Sample on every device while Ctrl-C is pressed; say so at the end."""
    content = np.random.default_rng(0).integers(-1000, 1000, 1 << 15, np.int32)
    for name in list_devices():
        queue = make_queue(name)
        built = cl.Program(queue.context, SOURCE).build()
        buffers = [put(queue, content) for _ in range(2)]

        def ask(turns: int) -> kernelcast.Estimate:
            kernel, args = cl.Kernel(built, "work"), [*buffers, np.int32(turns)]  # noqa: B023
            return kernelcast.estimate(kernel, (1 << 15,), (64,), args, queue=queue, budget=0.5)  # noqa: B023

        began_s = time.monotonic()
        ask(4000)
        whole_s = time.monotonic() - began_s
        interrupted = 0
        for place, share in enumerate((0.2, 0.5, 0.8)):
            timer = threading.Timer(share * whole_s, signal.raise_signal, [signal.SIGINT])
            timer.start()
            try:
                ask(4001 + place)
                timer.join()
                time.sleep(0.01)
            except KeyboardInterrupt:
                interrupted += 1
            same = [np.array_equal(read(queue, one, content), content) for one in buffers]
            sys.stdout.write(f"{name} {share} {same} {interrupted}\n")
            assert all(same)
        assert interrupted == 3
        assert ask(99).seconds > 0
    sys.stdout.write("all devices answered\n")


def test_buffers_are_left_after_an_interrupt() -> None:
    """Ctrl-C at any time of a sampling; the next question is answered as ever."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all devices answered\n")


def test_a_launch_that_leaves_a_buffer_is_refused(
    queue: cl.CommandQueue, program: cl.Program
) -> None:
    """Sizes of the very buffers and scalars prove it, and nothing runs; a guard is believed."""
    ones = np.ones(ITEMS, np.float32)
    y, x = put(queue, ones), put(queue, ones)
    part = y.get_sub_region(0, 2 * ITEMS)
    scalar, local, items = np.int32, cl.LocalMemory(4 * LOCAL), 64 * ITEMS
    wrong: list[tuple[int, list[Any], str]] = [
        (items, [y, x, scalar(items), local], r"y\[i\] leaves the buffer y.*32,768"),
        (ITEMS, [y, None, scalar(ITEMS), local], "leaves the buffer x"),
        (ITEMS, [part, x, scalar(ITEMS), local], "leaves the buffer y.*16,384"),
    ]
    with kernelcast.Predictor() as predictor:
        for size, args, complaint in wrong:
            launch = make_launch(program, "guarded", (size,), (LOCAL,), args, queue)
            with pytest.raises(kernelcast.InputError, match=complaint) as caught:
                predictor.estimate(launch)
            assert "line" in str(caught.value)
        short = make_launch(program, "staged", (ITEMS,), (LOCAL,), [y, cl.LocalMemory(64)], queue)
        with pytest.raises(kernelcast.InputError, match=r"leaves the buffer t.*has 64"):
            predictor.estimate(short)
        right = [y, x, scalar(ITEMS), local]
        launch = make_launch(program, "guarded", (items,), (LOCAL,), right, queue)
        assert predictor.estimate(launch).seconds > 0
        head, a = put(queue, np.zeros(1, np.int32)), put(queue, np.ones(ITEMS, np.int32))
        args = [head, a, scalar(ITEMS)]
        with pytest.raises(kernelcast.InputError, match="atomic_inc in line"):
            predictor.estimate(make_launch(program, "drain", (ITEMS,), (LOCAL,), args, queue))
    assert (read(queue, y, ones) == 1).all()
    assert read(queue, head, np.ones(1, np.int32)) == 0


PROBLEM = """\
code: |
  kernel void k(global volatile int *a) {{ {body} }}
kernel: k
global_size: [8192]
local_size: [32]
args: [{{buffer: int32, count: {count}}}]
"""
ENDLESS = "while (a[get_global_id(0)] >= 0) a[get_global_id(0)] = 1;"
WILD = (
    "for (long far = 1; far < 4096; ++far) a[get_global_id(0) + (far + (*a & 1)) * (1L << 30)] = 1;"
)
GOOD = "a[get_global_id(0)] = 1;"
GREEDY = (
    "local int t[1 << 26]; for (int j = get_local_id(0); j < (1 << 26); j += 32) t[j] = a[j & 7]; "
    "barrier(CLK_LOCAL_MEM_FENCE); a[get_global_id(0)] = t[(a[get_global_id(0)] * 7919) & 1023];"
)


def test_a_problem_file_cannot_harm_the_asker(tmp_path: Path, device_ids: list[str]) -> None:
    """A kernel that hangs, strays or wants too much costs its own answer, on its own device."""

    def ask(body: str, count: int = 8192, **more: Any) -> list[Any]:  # noqa: ANN401
        path = tmp_path / "k.yaml"
        path.write_text(PROBLEM.format(body=body, count=count))
        return kernelcast.estimate_problem(path, **more)

    for answer in ask(ENDLESS, timeout_s=1):
        # Mesa's llvmpipe leaves any loop after 65,535 turns.
        told = f"{answer.device_id}: no answer within 1 s (stage: "
        assert str(answer.error).startswith(told) if answer.error else answer.estimate.seconds > 0
    for answer in ask(WILD):  # what lies there decides whether the process dies
        assert isinstance(answer.error, kernelcast.DeviceError | None)
        if answer.error is not None:
            assert str(answer.error).startswith(answer.device_id)
    greedy = ask(GREEDY, devices=device_ids[:2])
    assert [type(answer.error).__name__ for answer in greedy] == ["DeviceLimitError"] * len(greedy)
    table = kernelcast.to_frame(greedy)
    assert table["error_message"].str.contains("local|shared").all()
    with pytest.raises(kernelcast.InputError, match="leaves the buffer a: work-item"):
        ask(GOOD, count=8000, devices=device_ids[:1])
    assert [answer.device_id for answer in ask(GOOD) if answer.estimate] == device_ids


def test_a_hostile_source_gets_nothing_from_the_service(
    tmp_path: Path, device_ids: list[str]
) -> None:
    """No attack of the table reaches a file or ends the service, whatever compiler is asked."""
    attacks = [
        attack
        for attack in list_attacks()
        if attack.on_devices and attack.caller == "runner" and attack.code != "kernel_crashed"
    ]
    assert len(attacks) >= 40
    strays = [attack for attack in attacks if attack.part == ON_DEVICES]
    with serve_targets(tmp_path / "data", device_ids) as (first, *others):
        wrong = [(attack.id, first.attack(attack)) for attack in attacks]
        wrong += [(attack.id, other.attack(attack)) for other in others for attack in strays]
    assert [(name, faults) for name, faults in wrong if faults] == []


if __name__ == "__main__":
    interrupt()
