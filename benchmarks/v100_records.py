"""Real counters of a V100 running a 25-point stencil, and how they are split in two halves.

The records come from ``shared/reference/warpspeed/measured_v100_3d25pt.json``. Constants of the
analytic GPU model may be chosen on `CHOSEN`; figures are reported on `REPORTED`.
"""

import json
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PATH = Path(__file__).parents[1] / "../shared/reference/warpspeed/measured_v100_3d25pt.json"
ARRAY = (640, 512, 512)
INTERIOR = (632, 504, 504)
GHOST_LAYERS = 4
PRINTED = (632 * 504 * 504) / (624 * 496 * 496)
"""Updates per printed one: the measuring program took the ghost layers off twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StencilRecord:
    """One local size of the stencil, measured.

    Parameters
    ----------
    local_size : tuple of int
        Work-items of a work-group along x, y and z.
    group_counts : tuple of int
        Work-groups launched along x, y and z.
    dram_load, dram_store, l2_load, l2_store : float
        Bytes per lattice update, by hardware counters.
    updates_per_s : float
        Lattice updates per second.
    """

    local_size: tuple[int, int, int]
    group_counts: tuple[int, int, int]
    dram_load: float
    dram_store: float
    l2_load: float
    l2_store: float
    updates_per_s: float


def read_records(path: Path = DEFAULT_PATH) -> list[StencilRecord]:
    """Read the records whose launched grid is the one asked for, sorted by local size."""
    records = json.loads(path.read_text())["records"]
    clean = [one for one in records if one["launched_grid"] == one["grid_from_block"]]
    return sorted(
        (
            StencilRecord(
                local_size=tuple(one["block"]),
                group_counts=tuple(one["launched_grid"]),
                dram_load=one["dram_load_B_per_lup"],
                dram_store=one["dram_store_B_per_lup"],
                l2_load=one["L2_load_B_per_lup"],
                l2_store=one["L2_store_B_per_lup"],
                updates_per_s=one["perf_GLup_per_s"] * 1e9 * PRINTED,
            )
            for one in clean
        ),
        key=lambda one: one.local_size,
    )


def split_records(
    records: list[StencilRecord],
) -> tuple[list[StencilRecord], list[StencilRecord]]:
    """Give the half on which constants are chosen and the half on which they are reported."""
    return records[0::2], records[1::2]
