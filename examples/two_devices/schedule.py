"""Runs launches of pyopencl objects on the faster of two devices, and learns from what they took.

The program is built for both devices. One predictor estimates each launch on both; the launch runs
where kernel and transfers are expected to take the least time, and the predictor is told what the
kernel took: by its event, or by the host's clock where events tell wrong times. In the next round
that time is part of the answer there, and nothing is sampled.

    python examples/two_devices/schedule.py [--devices ID ID] [--rounds N]
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

import kernelcast
from kernelcast.sampling.discovery import choose_device, find_devices

SOURCE = """
__kernel void horner(__global float *y, __global const float *x, const int degree)
{
    const size_t i = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < degree; ++k)
        sum = sum * x[i] + 1.0f / (k + 1);
    y[i] = sum;
}
"""
DEGREE = 128
LOCAL_SIZE = 64
SIZES = (1 << 16, 1 << 20)
"""Work-items of each launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A launch on a device, with what its kernel and queue do not keep alive on every driver."""

    launch: kernelcast.Launch
    context: Any
    program: Any


def main() -> None:
    """Run every launch once a round, each time on the device that is expected to be faster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", nargs=2, metavar="ID", help="ids, or their beginnings")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    devices = choose_two(options.devices)
    places = {size: [prepare(device, size) for device in devices] for size in SIZES}
    with kernelcast.Predictor() as predictor:
        for number in range(options.rounds):
            for size, choices in places.items():
                values = np.linspace(0, 1, size, dtype=np.float32)
                estimate, reason, clock_s = schedule(predictor, choices, values)
                print(f"round {number}, {size} work-items: {reason}")  # noqa: T201 - an example shows
                print(f"  {estimate.tier}: {estimate.seconds:.2e} s; took {clock_s:.2e} s")  # noqa: T201


def choose_two(wanted: Sequence[str] | None) -> list[Any]:
    """Give two OpenCL devices: those that are named, or the first two."""
    found = find_devices()
    if wanted:
        return [choose_device(one, found)[1] for one in wanted]
    if len(found) < 2:
        raise SystemExit("two OpenCL devices are needed; `kernelcast devices` lists those here")
    return [device for _, device in found[:2]]


def prepare(device: Any, size: int) -> Place:  # noqa: ANN401 - pyopencl ships no types
    """Build the program, make buffers, and run the launch once, so that no time holds a build."""
    context = cl.Context([device])
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, device, properties=profiling)
    program = cl.Program(context, SOURCE).build()
    x = cl.Buffer(context, cl.mem_flags.READ_ONLY, size=4 * size)
    y = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, size=4 * size)
    launch = kernelcast.Launch(
        cl.Kernel(program, "horner"), (size,), (LOCAL_SIZE,), (y, x, np.int32(DEGREE)), queue=queue
    )
    place = Place(launch=launch, context=context, program=program)
    run(place, np.ones(size, dtype=np.float32))
    return place


def schedule(
    predictor: kernelcast.Predictor, places: Sequence[Place], values: np.ndarray
) -> tuple[kernelcast.Estimate, str, float]:
    """Run a launch on the device that is expected to be faster; tell what it took.

    Gives the estimate, why that device was chosen, and the seconds by the host's clock.
    """
    entries = predictor.estimate_many([one.launch for one in places])
    fastest = predictor.fastest(entries)
    _, event, clock_s = run(places[entries.index(fastest.entry)], values)
    estimate = fastest.entry.estimate
    assert estimate is not None  # `fastest` chooses among those that have one
    # `prepare` has run it before: this is not its first launch, which might hold a build.
    try:
        predictor.observe(estimate, event, is_first=False)
    except kernelcast.EventTimesError:  # rusticl's events say 1 ns of any launch
        predictor.observe(estimate, clock_s, is_first=False)
    return estimate, str(fastest), clock_s


def run(place: Place, values: np.ndarray) -> tuple[np.ndarray, Any, float]:
    """Move the data there, run the kernel, fetch the result.

    Gives the result, the event of the kernel's launch, and its seconds by the host's clock.
    """
    launch, queue = place.launch, place.launch.queue
    y, x, _ = launch.args
    cl.enqueue_copy(queue, x, values)
    queue.finish()  # else the clock would hold the copy
    start_s = time.perf_counter()
    event = launch.kernel(queue, launch.global_size, launch.local_size, *launch.args)
    queue.finish()
    clock_s = time.perf_counter() - start_s
    result = np.empty_like(values)
    cl.enqueue_copy(queue, result, y)
    return result, event, clock_s


if __name__ == "__main__":
    main()
