"""Where the paper's pick stands: the 25-point stencil on an A100, all work-groups of 1024.

``python benchmarks/warpspeed_ranking.py`` models the paper's list (section 5.2: sides of powers of
two, 1024 work-items, no folding, 2y and 2z) with each set of hit rates that is shipped, prints
where the paper's best predicted and best measured configuration stand, and writes
``benchmarks/results/v100_stencil/ranking.json``. Registers are not known of the paper's kernels; 64
is the most that 1024 work-items leave each.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from v100_time import make_launch

from kernelcast.analytic.gpu.estimate import estimate_from_volumes
from kernelcast.analytic.gpu.hit_rates import read_hit_rates
from kernelcast.analytic.gpu.limiters.rates import match_constants
from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.folding import fold
from kernelcast.records.errors import NDRangeError

TARGET = Path(__file__).parent / "results/v100_stencil/ranking.json"
MACHINE = find_machine("a100")
WORK_ITEMS = 1024
REGISTERS = 64
FOLDS = {"none": None, "2y": (1, 2), "2z": (2, 2)}
CLAIMED = {"best predicted by the paper": ((16, 2, 32), "2z"),
           "best measured by the paper": ((64, 4, 4), "2z")}  # fmt: skip
SHOWN = 5


def list_local_sizes() -> Iterator[tuple[int, int, int]]:
    """List the paper's work-groups."""
    for x, y, z in product(range(11), range(11), range(7)):
        if 2 ** (x + y + z) == WORK_ITEMS:
            yield 2**x, 2**y, 2**z


def rank(name: str) -> list[dict[str, Any]]:
    """Model all configurations with a set of hit rates, fastest first."""
    rates = read_hit_rates()[name]
    rows: list[dict[str, Any]] = []
    for local_size, (folding, axis) in product(list_local_sizes(), FOLDS.items()):
        launch = replace(make_launch(local_size), registers=REGISTERS)
        if axis is not None:
            try:
                launch = fold(launch, *axis)
            except NDRangeError:  # longer than the folded axis
                continue
        volumes = compute_volumes(launch, read_machine(MACHINE), rates)
        found = estimate_from_volumes(
            launch, MACHINE, volumes, constants=match_constants(rates.name)
        )
        rows.append({
            "local_size": local_size, "fold": folding, "limiter": found.limiter,
            "updates_per_s": volumes.updates / found.seconds,
            "dram_load_bytes_per_update": volumes.per_update()["DRAM_to_L2"],
        })  # fmt: skip
    return sorted(rows, key=lambda row: -row["updates_per_s"])


def main() -> None:
    """Rank, print and write."""
    result: dict[str, Any] = {"machine": MACHINE.name, "registers": REGISTERS}
    for name in read_hit_rates():
        rows = rank(name)
        best = rows[0]["updates_per_s"]
        places = {
            title: {
                "rank": place, "share_of_first": row["updates_per_s"] / best, **row,
            }
            for title, (local_size, folding) in CLAIMED.items()
            for place, row in enumerate(rows, start=1)
            if (row["local_size"], row["fold"]) == (local_size, folding)
        }  # fmt: skip
        result[name] = {"configurations": len(rows), "first": rows[:SHOWN], **places}
        first = rows[0]
        print(f"{name}: first {first['local_size']} {first['fold']}, {best / 1e9:.1f} GLup/s")
        for title, row in places.items():
            print(f"  {title}: rank {row['rank']} of {len(rows)}, "
                  f"{row['share_of_first']:.1%} of the first's speed")  # fmt: skip
    TARGET.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
