"""Every measured record that the GPU model can be asked about, and why the others cannot."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpu_family_kernels import (
    STREAMS,
    add_vectors,
    box_2d,
    coulomb,
    laplacian,
    polygon,
    stream,
    textbook,
    transpose,
)
from gpu_family_machines import SHIPPED

from kernelcast.expressions.accesses import ModelledLaunch
from kernelcast.records.operations import NumberClass, Operation, OperationCounts, OperationKind
from support.stencils import make_star

FOLDER = Path(__file__).parents[1] / "../shared/reference/gpu_measured"
SECTOR = 32
# Not known of the runs: enough for 25 values, and the most that 1024 work-items can have.
STAR_REGISTERS = 64
LARGE = 4 << 20
EVERY_SIZE, WORK_GROUPS = 6, (64, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A measured launch.

    Parameters
    ----------
    family, device, id : str
        Of the record; the device as `gpu_family_machines.describe` knows it.
    launch : ModelledLaunch
        What the model is asked about.
    measured : mapping of str to float
        Bytes of the whole launch (``dram_load``, ``dram_store``, ``l2_load``, ``l2_store``) and
        ``seconds``.
    """

    family: str
    device: str
    id: str
    launch: ModelledLaunch
    measured: Mapping[str, float]


def list_cases(left_out: Counter[str]) -> Iterator[Case]:
    """Give all cases; count in `left_out` why records are none."""
    records = json.loads((FOLDER / "kernels.json").read_text())["records"]
    makers = {
        "star3d25_v100": make_star25, "star3d13_fold_v100": make_star13,
        "box2d_mem_vol_v100": make_box, "box2d_mem_v100": make_box, "box2d_l1_v100": make_box,
        "babelstream_ornl": make_stream, "laplace7_amdlab": make_laplacian,
        "transpose_naive_v100s": make_transpose,
    }  # fmt: skip
    for record in records:
        family, device = record["family"], record["device"]
        found = makers[family](record["config"], record["measured"])
        if isinstance(found, str):
            left_out[f"{family}: {found}"] += 1
            continue
        launch, measured = found
        if family == "star3d13_fold_v100":
            fold = record["config"]["fold"][2]
            family = f"star3d13_{fold}z_v100" if fold > 1 else "star3d13_v100"
        yield Case(family=family, device=device, id=record["id"], launch=launch, measured=measured)
    for table in json.loads((FOLDER / "tuning_tables.json").read_text())["tables"]:
        yield from list_rows(table, left_out)
    for table in json.loads((FOLDER / "microbenchmarks.json").read_text())["tables"]:
        if table.get("launch_mode") == "stream launches":
            yield from list_repeated(table)


Found = tuple[ModelledLaunch, dict[str, float]] | str


def scale_volumes(measured: Mapping[str, Any], updates: int) -> dict[str, float]:
    """Give volumes of the launch from those per update."""
    names = {"dram_load": "dram_read", "dram_store": "dram_write", "l2_load": "L2_read",
             "l2_store": "L2_write"}  # fmt: skip
    return {
        ours: measured[f"{theirs}_B_per_lup"] * updates
        for ours, theirs in names.items()
        if f"{theirs}_B_per_lup" in measured
    }


def make_star25(config: Mapping[str, Any], measured: Mapping[str, Any]) -> Found:
    """Make the 3-D star of range 4."""
    if config["block_requested"] != config["block_launched"]:
        return "work-groups of z = 128 were launched with 64"
    star = make_star(
        array=(640, 512, 512), radius=4, local_size=config["block_launched"],
        interior=(632, 504, 504), registers=STAR_REGISTERS,
    )  # fmt: skip
    kinds = {OperationKind.ADD: 24.0, OperationKind.MULTIPLY: 1.0}
    executed = OperationCounts(
        operations={
            Operation(kind=kind, number=NumberClass.FLOAT, bits=64): times
            for kind, times in kinds.items()
        },
        memory={},
    )
    updates = 632 * 504 * 504
    seconds = updates / (measured["glups_per_interior_lup"] * 1e9)
    volumes = scale_volumes(measured, updates)
    return replace(star, executed=executed), {**volumes, "seconds": seconds}


def make_star13(config: Mapping[str, Any], measured: Mapping[str, Any]) -> Found:
    """Make the 3-D star of range 2; the base lies 16 bytes before a line."""
    star = make_star(
        array=(600, 600, 512), radius=2, local_size=config["block_launched"],
        fold=tuple(config["fold"]), registers=config["registers"], alignment_bytes=112,
    )  # fmt: skip
    return star, scale_volumes(measured, 596 * 596 * 508)


def make_box(config: Mapping[str, Any], measured: Mapping[str, Any]) -> Found:
    """Make a 2-D box; those without a store have loads in a window that L1 holds."""
    local, radius = config["block_launched"], config["radius"]
    updates = 15_000 * 15_000
    if "L2_read_B_per_lup" in measured:
        return box_2d(radius, local), scale_volumes(measured, updates)
    in_l1 = radius == 2
    return box_2d(radius, local, in_l1=in_l1), {"seconds": updates / (measured["glups"] * 1e9)}


def make_stream(config: Mapping[str, Any], measured: Mapping[str, Any]) -> Found:
    """Make a kernel of BabelStream."""
    routine, count = config["routine"], config["n"][0]
    if routine not in STREAMS:
        return "the number of work-groups of the dot product is not stated"
    arrays = 3 if routine in {"Add", "Triad"} else 2
    return stream(routine, count), {"seconds": arrays * 8 * count / (measured["GBs_median"] * 1e9)}


def make_laplacian(config: Mapping[str, Any], measured: Mapping[str, Any]) -> Found:
    """Make a 7-point Laplacian."""
    kernel, tile = config["kernel"], config["tile_m"]
    facts = config["vgpr_sgpr_scratch_occ"]
    if "nontemporal" in kernel:
        return "stores that bypass the cache are not modelled"
    if (facts and facts[2]) or (facts is None and tile == 16):
        return "registers spill to memory"
    launch = laplacian(
        tile, config["n"], config["block_launched"], is_ascending=kernel[:7] not in {
            "kernel1", "kernel2"}, registers=facts[0] if facts else None,
    )  # fmt: skip
    found = {"dram_load": measured["FETCH_SIZE_GB"] * 1e9,
             "seconds": measured["time_ms_from_speedup"] * 1e-3}  # fmt: skip
    if "WRITE_SIZE_GB" in measured:
        found["dram_store"] = measured["WRITE_SIZE_GB"] * 1e9
    return launch, found


def make_transpose(config: Mapping[str, Any], measured: Mapping[str, Any]) -> Found:
    """Make NVIDIA's naive transposition."""
    names = {"dram_load": "dram_read", "dram_store": "dram_write", "l2_load": "l2_read",
             "l2_store": "l2_write"}  # fmt: skip
    found = {ours: SECTOR * measured[f"{one}_transactions"] for ours, one in names.items()}
    found["seconds"] = measured["time_us_avg"] * 1e-6
    return transpose(config["n"][0], rows=config["block_launched"][1]), found


def list_rows(table: Mapping[str, Any], left_out: Counter[str]) -> Iterator[Case]:
    """Give the cases of a table of the auto-tuners."""
    family, device = table["family"], table["device"]
    makers = {
        "ktt_coulomb3d": make_coulomb, "ktt_pnpoly": make_polygon, "ktt_vectoradd": make_addition,
        "simple_kernels_multi": make_textbook,
    }  # fmt: skip
    seen: set[str] = set()
    for values in table["rows"]:
        row = dict(zip(table["columns"], values, strict=True))
        name = "_".join(str(one) for one in values[:7])
        found = makers[family](row)
        if isinstance(found, str):
            left_out[f"{family}: {found}"] += 1
            continue
        if name in seen:
            left_out[f"{family}: measured twice"] += 1
            continue
        seen.add(name)
        launch, measured = found
        if family == "ktt_coulomb3d" and row["INNER_UNROLL_FACTOR"]:
            family_name = "ktt_coulomb3d_part"
        elif family == "simple_kernels_multi" and max(row["N"], row["cols"] * row["rows"]) < LARGE:
            family_name = "simple_kernels_small"
        else:
            family_name = family
        boosted = family in {"simple_kernels_multi", "ktt_pnpoly"} and device == "RTX2080Ti"
        yield Case(
            family=family_name, device=f"{device} boost" if boosted else device,
            id=f"{table['id']}/{name}", launch=launch, measured=measured,
        )  # fmt: skip


def list_repeated(table: Mapping[str, Any]) -> Iterator[Case]:
    """Give a kernel that multiplies an array, launched again and again, of 4096 elements on."""
    device = next(one for one in SHIPPED if table["device"].upper().startswith(one))
    for values in table["rows"][::EVERY_SIZE]:
        row = dict(zip(table["columns"], values, strict=True))
        for size in WORK_GROUPS:
            if speed := row.get(f"GBs_block{size}"):
                count = row["elements"] // size * size
                yield Case(
                    family="small_kernels", device=device, id=f"{table['id']}/{count}_{size}",
                    launch=stream("Mul", count, size),
                    measured={"seconds": 16 * row["elements"] / (speed * 1e9)},
                )  # fmt: skip


def read_counters(row: Mapping[str, Any]) -> dict[str, float]:
    """Give the volumes of a row with counters."""
    names = {"dram_load": "dram_sectors_read", "dram_store": "dram_sectors_write",
             "l2_load": "lts_sectors_read", "l2_store": "lts_sectors_write"}  # fmt: skip
    return {ours: SECTOR * float(row[theirs]) for ours, theirs in names.items()}


def make_coulomb(row: Mapping[str, Any]) -> Found:
    """Make a Coulomb summation."""
    if row["local_sectors_ld"] or row["local_sectors_st"]:
        return "registers spill to memory"
    launch = coulomb(
        (row["block_x"], row["block_y"], row["block_z"]), row["Z_ITERATIONS"],
        as_arrays=bool(row["USE_SOA"]), unrolled=row["INNER_UNROLL_FACTOR"],
        registers=row["registers"],
    )  # fmt: skip
    return launch, {**read_counters(row), "seconds": row["duration_us"] * 1e-6}


def make_polygon(row: Mapping[str, Any]) -> Found:
    """Make a point-in-polygon test."""
    if row["local_sectors_ld"] or row["local_sectors_st"]:
        return "registers spill to memory"
    methods = row["BETWEEN_METHOD"], row["USE_METHOD"]
    if row["BLOCK_SIZE_X"] % 128 or (any(methods) and row["BLOCK_SIZE_X"] != 256):
        return "moves what its neighbours in the table move"
    launch = polygon(row["block_x"], row["TILE_SIZE"], *methods, row["registers"])
    return launch, {**read_counters(row), "seconds": row["duration_us"] * 1e-6}


def make_addition(row: Mapping[str, Any]) -> Found:
    """Make an addition of vectors."""
    launch = add_vectors(row["N"], row["block_x"], row["registers"])
    return launch, {**read_counters(row), "seconds": row["duration_us"] * 1e-6}


def make_textbook(row: Mapping[str, Any]) -> Found:
    """Make a textbook kernel."""
    count, side = row["N"], row["cols"]
    if side != row["rows"]:
        return "the array is no square"
    launch = textbook(row["kernel"], count, side, row["registers"])
    if launch is None:
        return f"{row['kernel']}: what a work-item does is not described"
    return launch, {"seconds": row["mean_ms"] * 1e-3}
