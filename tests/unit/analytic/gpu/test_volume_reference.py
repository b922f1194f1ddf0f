"""Volumes against the reference implementation of the paper, and against real counters."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.analytic.gpu.volumes.affine import Grid, bind_sizes, to_box
from kernelcast.analytic.gpu.volumes.boxes import group_families
from kernelcast.analytic.gpu.volumes.warps import cost_warps
from kernelcast.expressions.accesses import AccessKind
from kernelcast.launches.machines import find_machine
from support.stencils import make_star

FOLDER = Path(__file__).parents[4] / "../shared/reference/warpspeed"
MEASURED = FOLDER.parent / "gpu_measured/kernels.json"
EXACT = 1e-3


def read_configs(name: str, array: tuple[int, ...], radius: int) -> list[dict[str, Any]]:
    """Give the A100's configurations whose work-groups stay within a row and a plane.

    The reference has no guard: larger work-groups run into the next row and are counted there.
    """
    return [
        one
        for one in json.loads((FOLDER / name).read_text())["configs"]
        if "A100" in one["device"]
        and all(
            by * fold + 2 * radius <= size
            for by, fold, size in zip(one["block"], one["fold"], array, strict=False)
        )
    ]


@pytest.mark.parametrize(
    ("name", "array", "radius", "alignment"),
    [
        ("outputs_2022_3d25pt.json", (640, 512, 512), 4, 0),
        ("outputs_2025_2d5pt.json", (15002, 15002), 1, 8),
    ],
)
def test_bank_cycles_and_requests_equal_the_reference(
    name: str, array: tuple[int, ...], radius: int, alignment: int
) -> None:
    """Cycles of the banks and sectors per warp are the reference's, in its version's rule."""
    a100, configs = read_machine(find_machine("a100")), read_configs(name, array, radius)
    assert len(configs) > 20
    rank = len(array)
    for config in configs:
        local, fold, counts = config["block"], config["fold"], config["launch"]["grid"]
        # The stencil as the reference saw it, without guard, and the work-groups that it sampled.
        launch = make_star(
            array=array, radius=radius, local_size=local[:rank], fold=tuple(fold),
            first=(0,) * rank,
            interior=[a * b * c for a, b, c in zip(local, fold, counts, strict=True)][:rank],
            is_rounded=False, alignment_bytes=alignment,
        )  # fmt: skip
        bound, grid = bind_sizes(launch), Grid.of(launch.ndrange)
        sampled = zip(config["launch"]["truncatedWaveSize"], grid.counts, strict=True)
        x, y, z = ((0, min(pair)) for pair in sampled)
        boxes = [to_box(one, launch, bound, {}) for one in launch.accesses]
        loads, stores = (
            group_families([one for one in boxes if one and one.access.kind is kind])[0]
            for kind in (AccessKind.LOAD, AccessKind.STORE)
        )
        load, store = (cost_warps(one, (x, y, z), grid, a100) for one in (loads, stores))
        items, basic = int(np.prod(config["block"])), config["basic"]
        warps = -(-items // 32)
        asked = 32 * load.sectors * len(loads) * warps
        written = 32 * store.sectors * len(stores) * warps
        assert asked == pytest.approx(basic["blockL1Load"], rel=EXACT)
        assert written == pytest.approx(basic["blockL2Store"], rel=EXACT)
        if "2022" in name:
            cycles = load.half_warp_cycles * len(loads) + store.half_warp_cycles * len(stores)
            assert cycles == pytest.approx(basic["L1Cycles"], rel=EXACT), config["block"]
        else:
            # The reference adds a cycle for every line that is filled; we report it apart.
            filled = basic["blockL1LoadAlloc"] / 128 / items
            field = basic["fieldL1Cycles"]["src"]
            cycles = load.data_cycles * len(loads) / 32 + filled
            assert cycles == pytest.approx(field["dataPipeCycles"], rel=EXACT), config["block"]
            tags = load.tag_cycles * len(loads) / 32
            assert tags == pytest.approx(field["tagCycles"], rel=EXACT)


@pytest.mark.parametrize(("fold", "goals"), [(1, (0.002, 0.016)), (2, (0.04, 0.05))])
def test_v100_counters_of_folded_stencils(fold: int, goals: tuple[float, float]) -> None:
    """Loads of a folded stencil are nearly as near to the counters as the plain one's."""
    machine = read_machine(find_machine("v100"))
    errors = []
    for one in json.loads(MEASURED.read_text())["records"]:
        config, measured = one["config"], one["measured"]
        if one["family"] != "star3d13_fold_v100" or config["fold"][2] != fold:
            continue
        star = make_star(
            array=(600, 600, 512), radius=2, local_size=config["block_launched"],
            fold=(1, 1, fold), registers=config["registers"], alignment_bytes=112,
        )  # fmt: skip
        volumes = compute_volumes(star, machine).per_update()
        errors.append([
            volumes["DRAM_to_L2"] / measured["dram_read_B_per_lup"] - 1,
            volumes["L2_to_L1"] / measured["L2_read_B_per_lup"] - 1,
            volumes["L2_to_DRAM"] / measured["dram_write_B_per_lup"] - 1,
        ])  # fmt: skip
    assert len(errors) == 30
    dram_load, l2_load, dram_store = np.abs(errors).mean(axis=0)
    assert dram_load < goals[0]
    assert l2_load < goals[1]
    assert dram_store < 0.002


def test_loads_that_fit_into_registers_are_not_spread() -> None:
    """Only a work-item that holds fewer values than it loads loses data to work-items ahead."""
    machine = read_machine(find_machine("v100"))
    lost = {
        registers: compute_volumes(
            make_star(array=(600, 600, 512), radius=2, local_size=(32, 2, 16), fold=(1, 1, 2),
                      registers=registers), machine,
        ).l2_load_bytes
        for registers in (32, 44)
    }  # fmt: skip
    assert lost[32] > 1.1 * lost[44]
