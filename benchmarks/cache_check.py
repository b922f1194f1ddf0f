"""Check measured cache sizes against the operating system and an independent pointer chase in C.

    python benchmarks/cache_check.py [--effort quick|normal|full] [--rounds N]

The chase (pointer_chase.c, compiled by ``cc`` where there is one) shares no code with kernelcast.
Chase and devices take turns, `--rounds` times. A size passes within one power of two of what the
operating system reports; latencies must increase with the level. Exit status 1 if one does not.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelcast.records.device import DeviceKind
from kernelcast.sampling.discovery import find_devices
from kernelcast.sampling.microbenchmarks.effort import Effort
from kernelcast.sampling.microbenchmarks.fits import LatencyFit, fit_levels
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.host_caches import HostCache, read_host_caches
from kernelcast.sampling.microbenchmarks.latency_curves import (
    choose_global_sizes,
    fit_points,
    walk_global,
)
from kernelcast.sampling.microbenchmarks.levels_match import match_caches
from kernelcast.sampling.session import DeviceSession, open_session

_SOURCE = Path(__file__).with_name("pointer_chase.c")
_BEYOND = 4
_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Caches as one program sees them.

    Parameters
    ----------
    who : str
        The chase in C, or a device.
    sizes_bytes, latencies_s : dict of str to float
        By the name of the cache; latencies also of ``memory``.
    """

    who: str
    sizes_bytes: dict[str, float]
    latencies_s: dict[str, float]


def main() -> int:
    """Run the check and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--effort", choices=[one.value for one in Effort], default="normal")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("RUSTICL_ENABLE", "llvmpipe")
    host_caches = read_host_caches()
    if not host_caches:
        print("the operating system does not report its caches: nothing to check against")
        return 0
    sessions = _open_sessions()
    checks: list[Check] = []
    with tempfile.TemporaryDirectory() as folder:
        program = compile_chase(Path(folder))
        for _ in range(options.rounds):
            if program is not None:
                checks.append(_describe("pointer chase in C", run_chase(program, host_caches),
                                        host_caches))  # fmt: skip
            checks += [_check_device(one, Effort(options.effort), host_caches) for one in sessions]
    failures = [failure for check in checks for failure in find_failures(check, host_caches)]
    _print(checks, failures, host_caches, as_json=options.json)
    return 1 if failures else 0


def compile_chase(folder: Path) -> Path | None:
    """Compile the chase; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler (cc): the independent chase is left out", file=sys.stderr)
        return None
    program = folder / "pointer_chase"
    command = [compiler, "-O2", "-o", str(program), str(_SOURCE), "-lm"]
    subprocess.run(command, check=True)
    return program


def run_chase(program: Path, host_caches: tuple[HostCache, ...]) -> LatencyFit:
    """Run the chase and fit its levels."""
    largest = _BEYOND * max(cache.size_bytes for cache in host_caches)
    command = [str(program), str(largest), str(_PER_OCTAVE)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = np.array([[float(word) for word in line.split()] for line in text.splitlines()])
    return fit_levels(rows[:, 0], rows[:, 1] * 1e-9, is_host=True)


def find_failures(check: Check, host_caches: tuple[HostCache, ...]) -> list[str]:
    """List what is not as it must be."""
    failures = []
    for cache in host_caches:
        size = check.sizes_bytes.get(cache.name)
        if size is None:
            failures.append(f"{check.who}: {cache.name} was not found")
        elif abs(math.log2(size / cache.size_bytes)) > 1:
            failures.append(
                f"{check.who}: {cache.name} measured {_kib(size)}, "
                f"reported {_kib(cache.size_bytes)}"
            )
    latencies = list(check.latencies_s.values())
    if latencies != sorted(latencies):
        failures.append(f"{check.who}: latencies do not increase")
    return failures


def _open_sessions() -> list[DeviceSession]:
    return [
        open_session(description, device)
        for description, device in find_devices()
        if description.kind is DeviceKind.CPU
    ]


def _check_device(
    session: DeviceSession, effort: Effort, host_caches: tuple[HostCache, ...]
) -> Check:
    bench = Bench(session, effort)
    points = walk_global(bench, choose_global_sizes(bench, host_caches))
    return _describe(session.description.id, fit_points(points, is_host=True), host_caches)


def _describe(who: str, fit: LatencyFit, host_caches: tuple[HostCache, ...]) -> Check:
    caches = match_caches(fit, host_caches).caches
    found = [cache for cache in caches if cache.latency_s is not None]
    return Check(
        who=who,
        sizes_bytes={c.name: float(c.size_bytes.value) for c in found if c.size_bytes},
        latencies_s={c.name: c.latency_s.value for c in found if c.latency_s}
        | {"memory": fit.beyond_s.value},
    )


def _print(
    checks: list[Check],
    failures: list[str],
    host_caches: tuple[HostCache, ...],
    *,
    as_json: bool,
) -> None:
    if as_json:
        print(json.dumps({
            "reported_bytes": {cache.name: cache.size_bytes for cache in host_caches},
            "checks": [{"who": one.who, "sizes_bytes": one.sizes_bytes,
                        "latencies_s": one.latencies_s} for one in checks],
            "failures": failures,
        }, indent=1))  # fmt: skip
        return
    names = [cache.name for cache in host_caches]
    sizes = [_kib(cache.size_bytes) for cache in host_caches]
    print(f"{'sizes in KiB':30}" + "".join(f"{name:>10}" for name in names))
    print(f"{'operating system':30}" + "".join(f"{size:>10}" for size in sizes))
    for check in checks:
        cells = [_kib(check.sizes_bytes[n]) if n in check.sizes_bytes else "-" for n in names]
        print(f"{check.who:30}" + "".join(f"{cell:>10}" for cell in cells))
    print(f"{'nanoseconds':30}" + "".join(f"{name:>10}" for name in (*names, "memory")))
    for check in checks:
        values = [check.latencies_s.get(name) for name in (*names, "memory")]
        cells = ["-" if value is None else f"{value * 1e9:.1f}" for value in values]
        print(f"{check.who:30}" + "".join(f"{cell:>10}" for cell in cells))
    for failure in failures:
        print(f"FAILED {failure}")


def _kib(size_bytes: float) -> str:
    return f"{size_bytes / 1024:.0f}"


if __name__ == "__main__":
    sys.exit(main())
