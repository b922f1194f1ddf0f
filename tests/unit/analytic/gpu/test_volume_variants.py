"""What holds for every stencil, folding and device, whatever constants were fitted to."""

import math
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import compute_volumes
from kernelcast.launches.machines import find_machine
from support.stencils import make_star

MACHINES = (
    "v100", "a100", "a40", "l40", "h100-pcie", "gh200", "mi100", "mi210", "mi300x", "rx-6900-xt",
)  # fmt: skip
FOLDS = ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 1, 4), (1, 1, 8), (1, 4, 1), (2, 2, 2))
LOCAL_SIZES = ((32, 4, 1), (64, 2, 2), (16, 8, 2), (128, 1, 1), (8, 8, 4), (256, 1, 1), (32, 2, 4))
BYTES = 8
# Cut rows and guards are counted by means over alignments.
SLACK = 1.001
# Arguments of `make_star`, small enough to be shown where they fail.
stencils = st.fixed_dictionaries({
    "array": st.tuples(st.integers(20, 700), st.integers(20, 300), st.integers(20, 200)),
    "radius": st.integers(1, 4),
    "local_size": st.sampled_from(LOCAL_SIZES),
    "fold": st.sampled_from(FOLDS),
    "registers": st.sampled_from([None, 32, 64, 128]),
    "alignment_bytes": st.integers(0, 15).map(lambda one: BYTES * one),
})  # fmt: skip
machines = st.sampled_from(MACHINES)


@given(stencils, machines)
def test_volumes_lie_between_what_is_needed_and_what_is_asked_for(
    stencil: dict[str, Any], name: str
) -> None:
    """Moves at least each datum once, and at most what all warps ask for."""
    machine = read_machine(find_machine(name))
    found = compute_volumes(make_star(**stencil), machine)
    needed = BYTES * math.prod(n - 2 * stencil["radius"] for n in stencil["array"])
    most = found.l1.requested_bytes * found.work_groups
    fetches = max(1.0, machine.dram_fetch_bytes / machine.l1_sector_bytes)
    assert needed <= SLACK * found.dram_load_bytes
    assert needed <= SLACK * found.l2_load_bytes
    assert needed <= SLACK * found.dram_store_bytes
    assert found.l2_load_bytes <= SLACK * most
    # Sectors that are written in parts are read to be completed.
    completed = found.wave.partial_store_bytes * found.wave.waves
    assert found.dram_load_bytes <= SLACK * (most * fetches + completed)
    assert found.dram_store_bytes <= SLACK * found.l2_written_bytes
    assert all(math.isfinite(one) for one in found.per_update().values())


@given(stencils, machines, st.integers(2, 8))
def test_larger_caches_never_move_more(stencil: dict[str, Any], name: str, times: int) -> None:
    """Loads no more from L2 with a larger L1, and no more from DRAM with a larger L2."""
    launch, machine = make_star(**stencil), read_machine(find_machine(name))
    base = compute_volumes(launch, machine)
    wide = compute_volumes(launch, replace(machine, l1_bytes=times * machine.l1_bytes))
    deep = compute_volumes(launch, replace(machine, l2_bytes=times * machine.l2_bytes))
    assert wide.l2_load_bytes <= SLACK * base.l2_load_bytes
    assert deep.dram_load_bytes <= SLACK * base.dram_load_bytes
