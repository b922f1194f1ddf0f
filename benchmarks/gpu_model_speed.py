"""CPU time of the GPU model: one configuration at grid sizes from 128 to 4096, and whole sweeps.

``python -m benchmarks gpu_model_speed`` prints a table and writes
``benchmarks/results/gpu_model_speed/speed.json``. Times are CPU times of the process, the least of
several repeats, on the machine that is named there.
"""

import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness import RESULTS, write_json

from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import sweep_local_sizes
from kernelcast.launches.modelling.sources import read_launch_source
from support.stencils import make_star

TARGET = RESULTS / "gpu_model_speed/speed.json"
MACHINE = find_machine("a100")
SIDES = (128, 256, 512, 1024, 2048, 4096)
REPEATS = 9
STENCILS = {"3D 25-point": (3, 4), "2D 5-point": (2, 1)}
LOCAL_SIZES = {
    "3D 25-point": ((32, 4, 8), (16, 2, 32), (31, 4, 5)),
    "2D 5-point": ((32, 8), (128, 2), (31, 7)),
}
GOALS_MS = {"3D 25-point": 10.0, "2D 5-point": 5.0}
SWEPT = Path(__file__).resolve().parent.parent / "examples/models/accesses/stencil3d25pt.yaml"
SWEEP_GOAL_S = 0.35


def measure(compute: Callable[[], object], repeats: int = REPEATS) -> float:
    """Give the least CPU seconds of several calls."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        compute()
        found.append(time.process_time() - start)
    return min(found)


def make_launch(stencil: str, side: int, local_size: tuple[int, ...]) -> ModelledLaunch:
    """Make a stencil on a cube or a square."""
    dimensions, radius = STENCILS[stencil]
    return make_star(array=(side,) * dimensions, radius=radius, local_size=local_size)


def main() -> None:
    """Measure, print and write."""
    rows = []
    for stencil, local_sizes in LOCAL_SIZES.items():
        for local_size in local_sizes:
            launches = [make_launch(stencil, side, local_size) for side in SIDES]
            times = [1e3 * measure(partial(estimate_gpu, one, MACHINE)) for one in launches]
            rows.append({
                "stencil": stencil, "local_size": local_size, "goal_ms": GOALS_MS[stencil],
                "cpu_ms_by_side": dict(zip(SIDES, times, strict=True)),
            })  # fmt: skip
            shown = "  ".join(f"{one:6.2f}" for one in times)
            print(f"{stencil:12s} {'x'.join(map(str, local_size)):8s} {shown} ms")
    sweeps = []
    sweep_s = measure(
        lambda: sweeps.append(sweep_local_sizes(read_launch_source(SWEPT), MACHINE)), 1
    )
    count = len(sweeps[0].configurations)
    print(f"sweep of {count} local sizes: {sweep_s:.2f} s")
    result = {
        "machine": platform.processor() or platform.machine(),
        "modelled": MACHINE.name,
        "sides": SIDES,
        "rows": rows,
        "sweep": {
            "file": SWEPT.name, "local_sizes": count, "cpu_s": sweep_s,
            "goal_s": SWEEP_GOAL_S,
        },
    }  # fmt: skip
    write_json(TARGET, result)


if __name__ == "__main__":
    main()
