"""Own overhead of a warm estimate through the Python API: everything but the sampled launches.

The program is built, P_sat is known, the buffers are small. Estimates follow each other on the
first device of each platform; printed are medians and 90th percentiles in milliseconds. Writes
``results/overhead/<device>.json``.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from machine import describe_machine

import kernelcast
from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.runtimes import pin_threads
from kernelcast.sampling.user_objects import session_of

RESULTS = Path(__file__).resolve().parent / "results" / "overhead"
ESTIMATES = 60
WARM_UP = 5
WORK_ITEMS = 1 << 18
SOURCE = """
kernel void smooth(global float *out, global const float *in, int rounds)
{
    const size_t i = get_global_id(0);
    float x = in[i];
    for (int r = 0; r < rounds; ++r)
        x = 0.5f * x + native_sin(x);
    out[i] = x;
}
"""


class _Stopwatch:
    """Adds up the host time spent inside the sampled launches, from enqueueing to their end."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._time_boxes = OpenCLLaunch.time_boxes

    def __call__(self, launch: OpenCLLaunch, boxes: Sequence[GroupBox]) -> list[float]:
        start = time.perf_counter()
        durations = self._time_boxes(launch, boxes)
        self.seconds += time.perf_counter() - start
        return durations


def main() -> None:
    """Measure on every platform, or on those whose name contains the first argument."""
    pin_threads()
    wanted = sys.argv[1].lower() if len(sys.argv) > 1 else ""
    for platform in cl.get_platforms():
        if wanted in platform.name.lower():
            for device in platform.get_devices()[:1]:
                _measure(device)


def _measure(device: cl.Device) -> None:
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    content = np.linspace(0, 1, WORK_ITEMS, dtype=np.float32)
    flags = cl.mem_flags
    given = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=content)
    result = cl.Buffer(context, flags.READ_WRITE, size=content.nbytes)
    program = cl.Program(context, SOURCE).build()
    kernel = cl.Kernel(program, "smooth")
    overhead_s, total_s, repeated_s, estimate = [], [], [], None
    watch = _Stopwatch()
    OpenCLLaunch.time_boxes = lambda launch, boxes: watch(launch, boxes)  # type: ignore[method-assign]
    for number in range(WARM_UP + ESTIMATES):
        # Another scalar is another launch: the same one would be answered from memory.
        arguments = [result, given, np.int32(2000 + number)]
        watch.seconds = 0.0
        start = time.perf_counter()
        estimate = kernelcast.estimate(kernel, (WORK_ITEMS,), (64,), arguments, queue=queue)
        total_s.append(time.perf_counter() - start)
        overhead_s.append(total_s[-1] - watch.seconds)
        start = time.perf_counter()
        kernelcast.estimate(kernel, (WORK_ITEMS,), (64,), arguments, queue=queue)
        repeated_s.append(time.perf_counter() - start)
    OpenCLLaunch.time_boxes = watch._time_boxes  # type: ignore[method-assign]  # noqa: SLF001
    row = {
        "overhead_median_s": float(np.median(overhead_s[WARM_UP:])),
        "overhead_90_s": float(np.quantile(overhead_s[WARM_UP:], 0.9)),
        "total_median_s": float(np.median(total_s[WARM_UP:])),
        "repeated_median_s": float(np.median(repeated_s[WARM_UP:])),
        "predicted_s": estimate.seconds if estimate else None,
    }
    name = session_of(queue).description.id
    RESULTS.mkdir(parents=True, exist_ok=True)
    content_of_file = {"device": name, "machine": describe_machine(), "rows": [row]}
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content_of_file, indent=1) + "\n", encoding="utf-8")
    print(
        f"{name}: own overhead {row['overhead_median_s'] * 1e3:.2f} ms median, "
        f"{row['overhead_90_s'] * 1e3:.2f} ms 90th percentile; "
        f"whole call {row['total_median_s'] * 1e3:.2f} ms; the same launch again "
        f"{row['repeated_median_s'] * 1e3:.2f} ms"
    )


if __name__ == "__main__":
    main()
