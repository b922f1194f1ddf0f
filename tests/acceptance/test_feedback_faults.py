"""What launches took is told by events or clocks that may be wrong, on devices or parts of them."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import kernelcast
from support.device_queues import list_devices, make_launch, write_calibration
from support.processes import keep_busy

pytestmark = pytest.mark.device

SOURCE = """
kernel void horner(global float *y, const int degree)
{
    float sum = 0.0f;
    for (int k = 0; k < degree; ++k)
        sum = sum * 0.5f + 1.0f / (k + 1);
    y[get_global_id(0)] = sum;
}
"""
SIZE = 16384
RUNS = 20
EQUALLY = cl.device_partition_property.EQUALLY
PROFILING = cl.command_queue_properties.PROFILING_ENABLE
HELD: list[Any] = []
"""Contexts and programs: some runtimes forget what only launches use."""


def prepare(device: cl.Device, properties: int = PROFILING) -> kernelcast.Launch:
    """Make a launch on a device, and run it once."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device, properties=properties)
    program = cl.Program(context, SOURCE).build()
    HELD.extend((context, program))
    y = cl.Buffer(context, cl.mem_flags.READ_WRITE, size=4 * SIZE)
    launch = make_launch(program, "horner", (SIZE,), (64,), (y, np.int32(500)), queue)
    run(launch).wait()
    return launch


def run(launch: kernelcast.Launch, wait_for: list[cl.Event] | None = None) -> cl.Event:
    """Run a launch; give its event."""
    launch.kernel.set_args(*launch.args)
    return cl.enqueue_nd_range_kernel(
        launch.queue, launch.kernel, launch.global_size, launch.local_size, wait_for=wait_for
    )


@pytest.mark.usefixtures("home")
def test_what_is_impossible_is_never_believed() -> None:
    """A nanosecond stays wrong on every device, also once repeated, and chooses no device."""
    launches = [prepare(device) for device in list_devices().values()]
    with kernelcast.Predictor() as predictor:
        answers = [predictor.estimate(launch) for launch in launches]
        for moment in range(4):
            for answer in answers:
                flags = predictor.observe(answer, 1e-9, is_first=False)
                assert [str(flag) for flag in flags] == ["doubted"]
            if moment < 3:
                time.sleep(1.05)
        entries = predictor.estimate_many(launches)
        fastest = predictor.fastest(entries).entry.estimate
    with kernelcast.Predictor() as another:
        later = [another.estimate(launch) for launch in launches]
    told = [entry.estimate for entry in entries]
    assert fastest in told
    for answer in [*told, *later]:
        assert answer is not None
        assert answer.low > 1e-7
        assert any("impossible" in warning for warning in answer.warnings)


@pytest.mark.usefixtures("home")
def test_an_event_tells_what_a_launch_took_or_is_refused(queue: cl.CommandQueue) -> None:
    """Its time counts where events are right; elsewhere the clock is asked for, nothing is kept."""
    launch = prepare(queue.device)
    begin_s = time.perf_counter()
    event = run(launch)
    event.wait()
    clock_s = time.perf_counter() - begin_s
    others = [run(launch) for _ in range(4)]
    cl.wait_for_events(others)
    # The least of five is that of a machine that does nothing else.
    event = min(event, *others, key=lambda one: one.profile.end - one.profile.start)
    events = [event, run(launch)]  # one that may not have ended
    with kernelcast.Predictor() as predictor:
        before = predictor.estimate(launch)
        event_s = 1e-9 * (event.profile.end - event.profile.start)
        if event_s > 1e-7:
            assert predictor.observe(launch, event, is_first=False, slowdown=1) == frozenset()
            after = predictor.estimate(launch)
            assert after.list_pieces()[0].kind == "observed"
            assert after.list_pieces()[0].seconds == pytest.approx(event_s)
            whole_s = 1e-9 * (events[1].profile.end - events[0].profile.start)
            predictor.observe(before, events, key="both")
            assert predictor.estimate(launch).explain().history.observations >= 1
            assert whole_s > event_s
        else:
            for given in (event, events):
                with pytest.raises(kernelcast.EventTimesError, match="by the host's clock"):
                    predictor.observe(before, given)
            assert predictor.estimate(launch).explain().history is None
            predictor.observe(launch, clock_s, is_first=False)
            history = predictor.estimate(launch).explain().history
            assert len(history.set_aside) + history.observations == 1
    if event_s > 1e-7:
        assert kernelcast.observe(launch, run(launch), is_first=False) <= {"outlier", "doubted"}
    else:
        with pytest.raises(kernelcast.EventTimesError):
            kernelcast.observe(launch, run(launch))


@pytest.mark.usefixtures("home")
def test_events_of_something_else_are_refused() -> None:
    """Copies, other contexts and devices, failed launches, queues without times: each is told."""
    others = [prepare(device) for device in list_devices().values()]
    for device in list_devices().values():
        launch, other, untimed = prepare(device), prepare(device), prepare(device, 0)
        gate = cl.UserEvent(launch.queue.context)
        failed = run(launch, wait_for=[gate])
        gate.set_status(-5)
        copied = cl.enqueue_fill_buffer(launch.queue, launch.args[0], np.int32(1), 0, 4)
        cases: list[tuple[kernelcast.Launch, Any, str]] = [
            (launch, copied, "than a kernel's launch"),
            (launch, gate, "than a kernel's launch"),
            (launch, run(other), "another context"),
            (launch, failed, "has failed"),
            (launch, [], "no event given"),
            (launch, [run(launch), 0.1], "float given"),
            (untimed, run(untimed), "keeps no times"),
        ]
        cases += [
            (launch, run(one), "of a launch on") for one in others if one.queue.device != device
        ]
        with kernelcast.Predictor() as predictor:
            for told, given, reason in cases:
                with pytest.raises(kernelcast.InputError, match=reason) as raised:
                    predictor.observe(told, given)
                assert raised.type is kernelcast.InputError


@pytest.mark.usefixtures("home")
def test_what_is_observed_on_a_busy_machine_counts_as_the_time_alone() -> None:
    """Runs beside other programs are kept without what these took; answers add it once."""
    launch = prepare(next(iter(list_devices().values())))
    with kernelcast.Predictor() as predictor:
        predictor.estimate(launch)
        with keep_busy():
            predictor.estimate(launch)
            for _ in range(3):
                begin_s = time.perf_counter()
                for _ in range(RUNS):
                    run(launch).wait()
                seconds = (time.perf_counter() - begin_s) / RUNS
                predictor.observe(launch, seconds, is_first=False)
            busy = predictor.estimate(launch)
        assert busy.now is not None
        assert busy.expected.seconds > busy.seconds
        told_s = busy.estimates_s["history"]
        assert told_s < seconds
        quiet = predictor.estimate(launch)
        assert quiet.estimates_s["history"] == told_s
    with kernelcast.Predictor() as another:
        assert another.estimate(launch).explain().history.observations == 3


ANOTHER_PROCESS = """
import sys
import pyopencl as cl
sys.path[:0] = {path!r}
from acceptance.test_feedback_faults import EQUALLY, kernelcast, list_devices, prepare
part = list_devices()[{name!r}].create_sub_devices([EQUALLY, 1])[0]
print(kernelcast.Predictor().estimate(prepare(part)).device_id)
"""


def test_a_sub_device_is_a_device_of_its_own(
    queue: cl.CommandQueue, home: Path, request: pytest.FixtureRequest
) -> None:
    """It has an id, the same in every process, units and history; no calibration of the whole."""
    device = queue.device
    if EQUALLY not in device.partition_properties:
        pytest.skip("the runtime has no sub-devices")
    whole, *parts = map(prepare, (device, *device.create_sub_devices([EQUALLY, 1])))
    with kernelcast.Predictor() as predictor:
        id_of_whole = predictor.estimate(whole).device_id
        write_calibration(home, id_of_whole)
        entries = predictor.estimate_many([whole, *parts])
        answers = [entry.estimate for entry in entries]
        assert None not in answers, [entry.error for entry in entries]
        ids = [answer.device_id for answer in answers]
        assert len(set(ids[1:])) == 1
        assert not ids[1].startswith(id_of_whole)
        assert [answer.compute_units for answer in answers[1:]] == [1] * len(parts)
        assert [entry.to_device_s is None for entry in entries] == [False] + [True] * len(parts)
        assert not any(piece.kind == "analytic" for piece in answers[1].list_pieces())
        predictor.observe(answers[1], answers[1].seconds, is_first=False, slowdown=1)
        kinds = [
            {piece.kind for piece in predictor.estimate(one).list_pieces()}
            for one in (whole, *parts)
        ]
        assert ["observed" in one for one in kinds] == [False] + [True] * len(parts)
        with pytest.raises(kernelcast.InputError, match=ids[1]):
            predictor.estimate(parts[0], id_of_whole)
    folders = [*sys.path, str(request.config.rootpath / "tests")]
    name = request.node.callspec.params["queue"]
    command = [sys.executable, "-c", ANOTHER_PROCESS.format(path=folders, name=name)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.split()[-1] == ids[1]
