"""Interface tracking in two-phase flow on an A100: the volumes paper's second application.

``python -m benchmarks interface_tracking`` asks the GPU model about the corpus kernel
``lbm/track_interface`` with all work-groups of 512 work-items whose sides are powers of two, and
writes ``benchmarks/results/interface_tracking/summary.md``. The paper's figures hold no numbers;
what its text says of them stands in the table beside ours.
"""

import statistics
from collections import Counter
from itertools import product
from pathlib import Path

from harness import RESULTS, make_table, write_text

from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import Configuration, configure
from kernelcast.launches.modelling.launches import ModelledKernel
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.records.errors import InputError
from kernelcast.training_data import corpus

KERNEL = Path(corpus.__file__).parent / "lbm" / "track_interface.yaml"
TARGET = RESULTS / "interface_tracking/summary.md"
CELLS = {"NX": 512, "NY": 512, "NZ": 256}
WORK_ITEMS = 512
NARROW = 2
"""Columns of work-groups all of whose stores fill a part of a sector only."""


def list_shapes(source: ModelledKernel) -> list[Configuration]:
    """Ask about all shapes."""
    machine = find_machine("a100")
    sides = [1 << power for power in range(10)]
    return [
        configure(source, machine, (x, y, z))
        for x, y, z in product(sides, sides, sides[:7])
        if x * y * z == WORK_ITEMS
    ]


def find_largest(source: ModelledKernel) -> int:
    """Find the most work-items of a work-group that registers allow, a power of two."""
    machine, size = find_machine("a100"), 64
    while size < 1024:
        try:
            configure(source, machine, (32, 2 * size // 32, 1))
        except InputError:
            break
        size *= 2
    return size


def describe(source: ModelledKernel) -> list[str]:
    """Write what the paper says, and what the model answers."""
    shapes = list_shapes(source)
    loads = {one.local_size: one.volumes.per_update()["DRAM_to_L2"] for one in shapes}
    narrow = [one for one in shapes if one.local_size[0] <= NARROW]
    wide = [one for one in shapes if one.local_size[0] > NARROW]
    missed = [
        one.volumes.wave.partial_store_bytes * one.volumes.wave.waves / one.updates
        for one in narrow
    ]
    limiters = Counter(one.estimate.limiter for one in wide)
    slowest = sorted(shapes, key=lambda one: one.estimate.seconds)[-len(narrow) :]
    usual = [loads[one.local_size] for one in wide]
    rows = [
        ("DRAM loads of most shapes", "around 150 B, 120 of them distributions",
         f"median {statistics.median(usual):.0f} B, {min(usual):.0f} to {max(usual):.0f}"),
        ("short x extents", "load partial lines, and miss on partial stores",
         f"{min(loads[one.local_size] for one in narrow):.0f} to "
         f"{max(loads[one.local_size] for one in narrow):.0f} B of DRAM loads for x = 1 and 2, "
         f"{min(missed):.0f} to {max(missed):.0f} of them to complete sectors"),
        ("largest work-group", "512 work-items, by registers",
         f"{find_largest(source)} work-items"),
        ("limiter", "DRAM for all but narrow shapes",
         ", ".join(f"{name}: {count} of {len(wide)}" for name, count in limiters.items())),
        ("slowest shapes", "short x extents",
         f"x = 1 and 2 are {sum(one in narrow for one in slowest)} of the slowest {len(narrow)}"),
    ]  # fmt: skip
    return [
        "# Interface tracking in two-phase flow", "",
        "D3Q15 pull scheme with a finite difference of 7 points, double precision, "
        f"{CELLS['NX']} x {CELLS['NY']} x {CELLS['NZ']} cells on an A100, {len(shapes)} shapes of "
        "512 work-items; per update. Nothing was fitted to it.", "",
        *make_table(["what", "paper, section 5", "model"], rows),
    ]  # fmt: skip


if __name__ == "__main__":
    write_text(TARGET, *describe(read_launch_source(KERNEL, parameters=CELLS)))
