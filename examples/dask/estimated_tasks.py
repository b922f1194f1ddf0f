"""Runs OpenCL kernels as Dask tasks whose durations the scheduler knows beforehand.

Two workers of one thread each run the kernels of `examples/starpu/kernels` at two sizes. Before any
task has run, kernelcast estimates each launch by running a few work-groups; the scheduler starts
with these durations instead of half a second for every task.

    python examples/dask/estimated_tasks.py [--device ID] [--tasks N]
"""

import argparse
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import distributed

from kernelcast import EstimateSettings, estimate_problem
from kernelcast.scheduling.dask_durations import (
    durations_of_estimates,
    expected_durations,
)

_FOLDER = Path(__file__).parents[1] / "starpu" / "kernels"
LAUNCHES = {"horner": (262144, 2097152), "matmul": (192, 384)}


def main() -> None:
    """Estimate, start a cluster that knows the estimates, run the tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", help="id of the OpenCL device, or its beginning")
    parser.add_argument("--tasks", type=int, default=4, help="tasks of each launch")
    options = parser.parse_args()
    durations: dict[str, str] = {}
    device_id = ""
    for kernel, sizes in LAUNCHES.items():
        for size in sizes:
            (answer,) = estimate_problem(
                _FOLDER / f"{kernel}.yaml",
                devices=[options.device] if options.device else None,
                parameters={"N": size},
                settings=EstimateSettings(),
            )
            if answer.estimate is None:
                raise SystemExit(str(answer.error))
            device_id = answer.device_id
            durations |= durations_of_estimates(
                [answer.estimate], workers={device_id: 2}, names={kernel: f"{kernel}_{size}"}
            )
    print("durations that the scheduler begins with:", durations)  # noqa: T201 - an example shows
    with (
        expected_durations(durations),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(prepare, device_id)
        begun = time.perf_counter()
        futures = [
            client.submit(
                run_launch, kernel, size, device_id, key=f"{kernel}_{size}-{number}", pure=False
            )
            for number in range(options.tasks)
            for kernel, sizes in LAUNCHES.items()
            for size in sizes
        ]
        workers = sorted(client.gather(futures))
        print(f"{len(futures)} tasks took {time.perf_counter() - begun:.3f} s")  # noqa: T201 - an example shows
        for worker in sorted({*workers}):
            print(f"worker {worker} ran {workers.count(worker)} of them")  # noqa: T201 - an example shows


def prepare(device_id: str) -> None:
    """Compile every kernel on a worker, so that no task pays for it."""
    for kernel, sizes in LAUNCHES.items():
        for size in sizes:
            run_launch(kernel, size, device_id)


def run_launch(kernel: str, size: int, device_id: str) -> int:
    """Run one launch; give the number of the process that ran it."""
    import pyopencl as cl

    _, queue, program, problem, arguments = _load(kernel, size, device_id)
    ndrange = problem.ndrange
    cl.Kernel(program, kernel)(queue, ndrange.global_size, ndrange.local_size, *arguments)
    queue.finish()
    return os.getpid()


@cache
def _load(kernel: str, size: int, device_id: str) -> Any:  # noqa: ANN401 - pyopencl ships no types
    import numpy as np
    import pyopencl as cl

    from kernelcast.launches.problem_file import read_problem
    from kernelcast.records.arguments import BufferArgument
    from kernelcast.sampling.discovery import choose_device, find_devices

    problem = read_problem(_FOLDER / f"{kernel}.yaml", parameters={"N": size})
    context = cl.Context([choose_device(device_id, find_devices())[1]])
    program = cl.Program(context, problem.kernel.source).build()
    arguments = [
        cl.Buffer(
            context,
            cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR,
            hostbuf=np.zeros(one.bytes, dtype=np.uint8),
        )
        if isinstance(one, BufferArgument)
        else np.int32(one.values[0])
        for one in problem.arguments
    ]
    # With the context: its queues do not keep it alive on every driver (Intel's releases it).
    return context, cl.CommandQueue(context), program, problem, arguments


if __name__ == "__main__":
    main()
