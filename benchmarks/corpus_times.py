"""Times the corpus's kernels at the default parameters of their problem files.

``python benchmarks/corpus_times.py [PATTERN] [--device ID]... [--usual] [--json FILE]`` prints, for
every kernel and local size (``--usual``: the first one only), the number of work-groups and the
least time of two whole runs after one that is not counted. Launches should take 0.1 to 0.5 s on
two CPU cores and have at least 256 work-groups.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training_data.applications import CorpusKernel, find_kernels

_RUNS = 2


def main() -> int:
    """Time what the command line names; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--device", action="append", metavar="ID", help="default: all devices")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the times there")
    parser.add_argument("--usual", action="store_true", help="the usual local size only")
    options = parser.parse_args()
    found = find_devices()
    ids = options.device or [description.id for description, _ in found]
    rows = []
    for device_id in ids:
        session = open_session(*choose_device(device_id, found))
        for kernel in find_kernels(options.pattern):
            local_sizes = kernel.local_sizes[:1] if options.usual else kernel.local_sizes
            for row in time_kernel(session, kernel, local_sizes):
                rows.append(row)
                print(_describe(row), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


def time_kernel(
    session: DeviceSession, kernel: CorpusKernel, local_sizes: Sequence[tuple[int, ...]]
) -> Iterator[dict[str, object]]:
    """Give a row for each local size; one that cannot be run says why."""
    if kernel.uses_fp64 and not session.description.has_fp64:
        return
    with tempfile.TemporaryDirectory(prefix="kernelcast-") as folder:
        for local_size in local_sizes:
            row: dict[str, object] = {
                "kernel": kernel.name,
                "device_id": session.description.id,
                "local_size": list(local_size),
            }
            try:
                problem = prepare_launch(
                    kernel, {}, local_size=local_size, cache_folder=Path(folder)
                ).problem
                with prepared_problem(session, problem, OpenCLLaunch, seed=0) as launch:
                    times_s = [launch.time_whole() for _ in range(_RUNS + 1)]
                row["work_groups"] = problem.ndrange.work_group_count
                row["buffer_bytes"] = problem.buffer_bytes
                row["seconds"] = min(times_s[1:])
            except KernelcastError as error:
                row["error"] = str(error)
            yield row


def _describe(row: dict[str, object]) -> str:
    place = f"{row['device_id']!s:30.30} {row['kernel']!s:40} {row['local_size']!s:12}"
    if "error" in row:
        return f"{place} {row['error']}"
    size_mib = int(str(row["buffer_bytes"])) / 2**20
    return f"{place} {row['work_groups']:>9} groups {size_mib:7.0f} MiB {row['seconds']:8.3f} s"


if __name__ == "__main__":
    sys.exit(main())
