"""Callers who wait so long and no longer, on real devices: nothing of theirs is waited for."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

import kernelcast
from acceptance.conftest import Run
from support.device_queues import put, read

pytestmark = pytest.mark.device

SOURCE = """
kernel void advance(global float *y, const int steps)
{
    float sum = y[get_global_id(0)];
    for (int k = 0; k < steps; ++k)
        sum = fma(sum, 0.999f, 1.0f);
    y[get_global_id(0)] = sum;
}
"""
ITEMS, LOCAL = 1 << 18, 64
LONG_S, HASTY_S, PATIENT_S = 1.0, 0.4, 30.0


@pytest.fixture
def predictor(home: Path) -> Iterator[kernelcast.Predictor]:
    """Give a predictor that samples what is longer than a millisecond."""
    settings = kernelcast.EstimateSettings(least_gain=0.01)
    options = kernelcast.PredictorOptions(settings=settings)
    with kernelcast.Predictor(options=options) as found:
        yield found


class Program:
    """A program with a queue for its own launches, and another one that is asked about."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.queue, self.own = queue, cl.CommandQueue(queue.context)
        self.program = cl.Program(queue.context, SOURCE).build()
        self.kernel = cl.Kernel(self.program, "advance")
        self.x, self.y = (put(queue, np.ones(ITEMS, np.float32)) for _ in range(2))

    def launch(self, steps: int) -> kernelcast.Launch:
        """Make a launch of so many steps."""
        kernel = cl.Kernel(self.program, "advance")
        return kernelcast.Launch(
            kernel, (ITEMS,), (LOCAL,), (self.y, np.int32(steps)), queue=self.queue
        )

    def start(self, steps: int) -> cl.Event:
        """Start a launch on the program's own queue."""
        event = self.kernel(self.own, (ITEMS,), (LOCAL,), self.x, np.int32(steps))
        self.own.flush()
        return event

    def start_long(self) -> cl.Event:
        """Start a launch that lasts for some seconds."""
        self.start(1).wait()  # compiles, where a runtime does that late
        steps, took_s = 64, 0.0
        while took_s < 0.3 * LONG_S:
            steps *= 4
            began_s = time.perf_counter()
            self.start(steps).wait()
            took_s = time.perf_counter() - began_s
        # Several: rusticl (Mesa 22.3) says of some launches at once that they have ended.
        return [self.start(int(steps * LONG_S / took_s)) for _ in range(3)][-1]


def is_running(event: cl.Event) -> bool:
    """Tell whether a launch has not ended."""
    return bool(event.command_execution_status != cl.command_execution_status.COMPLETE)


def list_reasons(estimate: kernelcast.Estimate) -> list[str]:
    """List what an answer says of samples that it has not."""
    return [one for one in estimate.warnings if one.startswith("not sampled: ")]


def test_no_launch_of_the_program_is_waited_for(
    queue: cl.CommandQueue, predictor: kernelcast.Predictor
) -> None:
    """What is known of other sizes answers, and says why; samples follow in the background."""
    own = Program(queue)
    assert not list_reasons(predictor.estimate(own.launch(500), within_s=PATIENT_S))
    event = own.start_long()
    hasty = predictor.estimate(own.launch(750), within_s=HASTY_S)
    entries = predictor.estimate_many(
        [own.launch(500), own.launch(1000)], within_s=2 * HASTY_S, in_background=True
    )
    assert is_running(event)
    told = [hasty, *(one.estimate for one in entries)]
    assert [len(list_reasons(one)) for one in told if one is not None] == [1, 0, 1]
    assert predictor.fastest(entries[:1]).entry is entries[0]
    event.wait()
    for steps in (750, 1000):
        found = predictor.estimate(own.launch(steps), within_s=PATIENT_S)
        assert not list_reasons(found)
        assert "samples" in {one.kind for one in found.list_pieces()}
    content = read(own.queue, own.y, np.empty(ITEMS, np.float32))
    assert np.isclose(content[0], 1.0)  # samples have run on copies


def test_nothing_is_known_while_the_device_is_busy(
    queue: cl.CommandQueue, predictor: kernelcast.Predictor
) -> None:
    """Of the first kernel that is asked of: who closes then waits for no sampling, nor a launch."""
    own = Program(queue)
    event = own.start_long()
    with pytest.raises(kernelcast.NoAnswerYetError, match=r"0\.4 s were over at the stage"):
        predictor.estimate(own.launch(500), within_s=HASTY_S, in_background=True)
    assert is_running(event)
    own.y.release()  # the background has a reference of its own
    event.wait()
    predictor.close()
    assert not any(one.name == "kernelcast-asking" for one in threading.enumerate())


def test_problems_are_answered_in_time(
    predictor: kernelcast.Predictor, problem: Path, device_ids: list[str]
) -> None:
    """A process that starts takes longer than that; what it has begun helps the next question."""
    read = kernelcast.read_problem(problem)
    with pytest.raises(kernelcast.NoAnswerYetError):
        predictor.estimate(read, device_ids[0], within_s=1e-3)
    assert not list_reasons(predictor.estimate(read, device_ids[0], within_s=PATIENT_S))
    (entry,) = predictor.estimate_many([read], device_ids[:1], within_s=PATIENT_S)
    assert entry.estimate is not None


def test_the_command_line_waits_no_longer(
    run: Run, problem: Path, device_ids: list[str], home: Path
) -> None:
    """A device without an answer in time is an error of it; with time, its samples answer."""
    words = ("estimate", problem, "--device", device_ids[0], "--json", "--within")
    hasty = run(*words, "0.0001", "--no-history")
    assert hasty.status == 1
    assert "0.0001 s were over" in hasty.stderr
    patient = run(*words, "30", "--least-gain", "0")
    assert (patient.status, patient.stderr) == (0, "")
    assert patient.json()[0]["sampling_seconds"] > 0
