"""Runs one problem once, whole, on the first device there is; `oclgrind_counts.py` starts it.

Started by ``oclgrind``, whose library stands before the OpenCL loader: Oclgrind is then the only
platform, and what `OCL_ICD_VENDORS` says is never read.
"""

import json
import sys
from dataclasses import replace

from kernelcast.launches.problem_file import read_problem
from kernelcast.sampling.discovery import find_devices
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import ProblemArguments
from kernelcast.sampling.session import DeviceSession

# Loads and stores as the source has them: the simulator's own default, -Os, merges and hoists.
# Without it, functions that are just `inline` are not defined (C99 6.7.4), so the word goes.
BUILD_OPTIONS = ("-cl-opt-disable", "-Dinline=")


def main() -> None:
    """Run the problem file, with the parameters and the seed, that the arguments name."""
    path, parameters, seed = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    problem = read_problem(path, parameters=parameters)
    description, device = find_devices()[0]
    session = DeviceSession(description, cl.Context([device]), device)
    options = (*problem.kernel.build_options, *BUILD_OPTIONS)
    kernel = session.whole_kernel(replace(problem.kernel, build_options=options)).kernel
    accesses = [None] * len(problem.arguments)
    held = ProblemArguments(session, problem, accesses, seed=seed)
    kernel.set_args(*held.arguments)
    where = problem.ndrange
    cl.enqueue_nd_range_kernel(
        session.queue, kernel, where.global_size, where.known_local_size, where.global_offset
    )
    session.queue.finish()
    held.release()  # a kernel does not keep its buffers alive


if __name__ == "__main__":
    main()
