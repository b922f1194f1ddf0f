"""The GPU model's volumes against a replay of all loads and stores of unmeasured stencils.

``python benchmarks/gpu_cache_replay.py [--cases N] [--seed N] [--machine NAME]`` draws stars of
other ranges, foldings, local sizes and base addresses, replays them load by load
(``gpu_cache_replay.c``, compiled by ``cc``) on 32 compute units with their share of L2 and DRAM,
and prints the model's errors by machine, for loads that registers hold at once and for others.
Work-groups start in dispatch order as places become free; caches are LRU. Of loads that are spread
over time the replay loses less than real counters show, so that it is a lower bound there.
"""

import argparse
import ctypes
import math
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernelcast.analytic.gpu.machine import GpuMachine, read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions import Symbol, SymbolKind
from kernelcast.expressions.accesses import AccessKind
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from support.stencils import make_star

SOURCE = Path(__file__).with_suffix(".c")
UNITS = 32
LATENCIES = (28, 212, 433)
"""Cycles of a load that L1, L2 and DRAM answer: a V100's."""
_IN_FLIGHT = 0.7
"""Share of the registers that hold loaded values."""
IDS = tuple(Symbol(SymbolKind.GLOBAL_ID, axis=axis) for axis in range(3))
LOCALS = (
    (32, 4, 1), (64, 2, 4), (16, 8, 8), (256, 2, 1), (8, 8, 16), (128, 8, 1), (32, 32, 1),
    (256, 1, 1), (4, 8, 32), (64, 4, 2), (16, 16, 1), (32, 8, 2), (64, 1, 1), (4, 4, 4),
    (24, 6, 2), (128, 1, 2), (20, 10, 1), (100, 3, 1), (512, 2, 1), (1024, 1, 1),
)  # fmt: skip
FOLDS = ((1, 1, 1),) * 8 + (
    (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 1, 4), (1, 8, 1), (1, 2, 2), (1, 4, 1), (4, 1, 1),
)  # fmt: skip


def compile_replay(folder: Path) -> ctypes.CDLL:
    """Compile the replay."""
    library = folder / "replay.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def cut(name: str) -> tuple[GpuMachine, tuple[int, int]]:
    """Give `UNITS` of a GPU's compute units; bytes of DRAM and of L2 per 1000 cycles."""
    whole = read_machine(find_machine(name))
    share = UNITS / whole.compute_units
    l2_bytes = int(whole.l2_total_bytes * share) // 2048 * 2048
    per_cycle = 1000 * share / (whole.clock_hz or 1.0)
    rates = (whole.dram_load_bytes_per_s or 0.0, whole.l2_bytes_per_s or 3e12)
    gpu = replace(whole, compute_units=UNITS, l2_bytes=l2_bytes, l2_units=UNITS)
    return gpu, (int(rates[0] * per_cycle), int(rates[1] * per_cycle))


def list_instructions(launch: ModelledLaunch) -> np.ndarray:
    """Give kind, bytes, first address and strides of each access, from its expression."""
    bases = {name: place << 36 for place, name in enumerate(launch.buffers, start=1)}
    rows = []
    for one in launch.accesses:
        assert one.offset_bytes is not None
        assert one.buffer is not None
        origin = dict.fromkeys(IDS, 0)
        offset = int(one.offset_bytes.evaluate(origin))
        strides = [int(one.offset_bytes.evaluate({**origin, at: 1})) - offset for at in IDS]
        address = bases[one.buffer] + launch.alignments.get(one.buffer, 0) + offset
        is_store = int(one.kind is AccessKind.STORE)
        rows.append([is_store, one.bytes, address, *strides, 0, 0, 0])
    return np.array(rows, dtype=np.int64)


def replay(
    library: ctypes.CDLL, launch: ModelledLaunch, items: Sequence[int], gpu: GpuMachine,
    rates: tuple[int, int], resident: int,
) -> tuple[int, int]:  # fmt: skip
    """Replay a launch; give the bytes that L2 and DRAM have sent."""
    loads = [one for one in launch.accesses if one.kind is AccessKind.LOAD]
    held = int((launch.registers or 64) * 4 * _IN_FLIGHT / loads[0].bytes)
    local = launch.ndrange.known_local_size
    machine = np.array(
        [gpu.compute_units, resident, gpu.warp_width, gpu.l1_bytes, gpu.l1_line_bytes,
         min(gpu.l1_sector_bytes, gpu.l1_line_bytes), gpu.l2_bytes, gpu.dram_fetch_bytes,
         *LATENCIES, *rates, gpu.architecture.l1_banks_bytes, min(len(loads), max(4, held)), 200],
        dtype=np.int64,
    )  # fmt: skip
    counts = [-(-n // by) for n, by in zip(launch.ndrange.global_size, local, strict=True)]
    space = np.array([*counts, *local, 0, 0, 0, *items, 1], dtype=np.int64)
    program, found = list_instructions(launch), np.zeros(8, dtype=np.int64)
    pointer = ctypes.POINTER(ctypes.c_int64)
    library.simulate(
        machine.ctypes.data_as(pointer), len(program), program.ctypes.data_as(pointer),
        space.ctypes.data_as(pointer), found.ctypes.data_as(pointer),
    )  # fmt: skip
    return int(found[0]), int(found[1])


def draw(rng: random.Random) -> tuple[ModelledLaunch, list[int], str]:
    """Draw a star, and how many work-items of it compute."""
    radius, fold, local = rng.choice((1, 2, 3, 4)), rng.choice(FOLDS), rng.choice(LOCALS)
    array = (
        rng.choice((260, 384, 400, 510)), rng.choice((256, 300, 350)),
        max(22, 2 * fold[2] * local[2]) + 2 * radius,
    )  # fmt: skip
    element, alignment = rng.choice((8, 8, 4)), rng.choice((0, 0, 8, 16, 112))
    registers = rng.choice((32, 64))
    star = make_star(
        array=array, radius=radius, local_size=local, fold=fold, element_bytes=element,
        registers=registers, alignment_bytes=alignment,
    )  # fmt: skip
    items = [-(-(n - 2 * radius) // by) for n, by in zip(array, fold, strict=True)]
    what = f"range {radius} fold {fold} local {local} array {array} {element} B + {alignment}"
    return star, items, f"{what}, {registers} registers"


def judge(volumes: GpuVolumes, replayed: tuple[int, int]) -> tuple[float, float]:
    """Give the model's errors of L2 and DRAM loads."""
    return volumes.l2_load_bytes / replayed[0] - 1, volumes.dram_load_bytes / replayed[1] - 1


def main(arguments: Sequence[str]) -> None:
    """Draw, replay and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machine", nargs="*", default=["v100", "a100", "mi210"])
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    errors: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        library = compile_replay(Path(folder))
        for _ in range(options.cases):
            name = rng.choice(options.machine)
            gpu, rates = cut(name)
            launch, items, what = draw(rng)
            volumes = compute_volumes(launch, gpu)
            found = replay(library, launch, items, gpu, rates, volumes.occupancy.work_groups)
            l2, dram = judge(volumes, found)
            kind = "spread" if any(one.is_spread for one in volumes.l1.reloads) else "at once"
            errors[f"{name}, loads {kind}"].append((l2, dram))
            sys.stdout.write(f"{name} {what}: L2 {100 * l2:+.0f} %, DRAM {100 * dram:+.0f} %\n")
    for kind, own in sorted(errors.items()):
        for place, quantity in enumerate(("L2", "DRAM")):
            median = statistics.median(abs(one[place]) for one in own)
            beyond = math.fsum(abs(one[place]) > 0.15 for one in own)
            sys.stdout.write(
                f"{kind}: {len(own)} launches, {quantity} loads {100 * median:.1f} % off in the "
                f"median, {beyond:.0f} beyond 15 %\n"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
