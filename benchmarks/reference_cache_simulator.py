"""Runs the reference simulator for `cache_simulator.py`: pycachesim, and kerncraft for cases.

    PYTHON reference_cache_simulator.py replay LEVELS < stream
    PYTHON reference_cache_simulator.py speed LEVELS < "iterations" lines
    PYTHON reference_cache_simulator.py cases MACHINES KERNELS SECONDS OUT

PYTHON is the interpreter of an environment of its own: nothing of kernelcast is needed in it.
"""

import json
import os
import random
import struct
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from cachesim import CacheSimulator

SIZES = {
    "2d-5pt": ({"M": 20000, "N": 430}, {"M": 3000, "N": 5100}, {"M": 900, "N": 1024}),
    "3d-7pt": (
        {"M": 70, "N": 310}, {"M": 200, "N": 90}, {"M": 40, "N": 730}, {"M": 100, "N": 128},
    ),
    "3d-7pt-varcoef": ({"M": 60, "N": 190}, {"M": 40, "N": 512}, {"M": 110, "N": 82}),
    "3d-long-range-stencil": ({"M": 80, "N": 220}, {"M": 50, "N": 640}, {"M": 130, "N": 88}),
    "uxx-stencil": ({"M": 60, "N": 170}, {"M": 40, "N": 430}, {"M": 100, "N": 96}),
    "3d-27pt": ({"M": 70, "N": 260}, {"M": 40, "N": 510}),
    "himeno_t": ({"L": 64, "M": 64, "N": 128}, {"L": 80, "M": 110, "N": 230}),
    "matsq": ({"N": 230}, {"N": 777}, {"N": 1500}),
    "matvec_trans": ({"M": 1500, "N": 2200},),
    "matvec": ({"M": 1200, "N": 900},),
    "triad": ({"N": 700000}, {"N": 9000000}),
    "1d-3pt": ({"N": 3000}, {"N": 4000000}),
    "DAXPY": ({"N": 1500000},),
    "copy": ({"N": 100000},),
    "kahan-dot": ({"N": 5000000},),
    "3d-7pt-2unrolled": ({"M": 60, "N": 240},),
}  # fmt: skip
MACHINES = (
    "SandyBridgeEP_E5-2680", "HaswellEP_E5-2695v3", "BroadwellEP_E5-2630v4",
    "SkylakeSP_Gold-5122", "CascadelakeSP_Gold-6248_SNC", "Zen_EPYC-7451", "Zen2_EPYC-7452",
    "A64FX_qpace4", "ARMv8_ThunderX2-CN9980", "SkylakeSP_Platinum-8147_2.7GHz",
)  # fmt: skip


def pair(loads: np.ndarray, stores: np.ndarray) -> np.ndarray:
    """Write addresses of iterations as the reference takes them."""
    kind = [("load", "i8", (loads.shape[1],)), ("store", "i8", (stores.shape[1],))]
    both = np.empty(len(loads), dtype=kind)
    both["load"], both["store"] = loads, stores
    return both


def replay(levels: dict) -> None:
    """Run a stream, and print its counts and how many lines a victim cache holds twice.

    The stream has blocks of: number of words, words. The first block tells which accesses of an
    iteration write; then come addresses; an empty block sets the counts to 0.
    """
    simulator = CacheSimulator.from_dict(levels)[0]

    def read_block() -> np.ndarray | None:
        head = sys.stdin.buffer.read(8)
        if len(head) < 8:
            return None
        [words] = struct.unpack("q", head)
        return np.frombuffer(sys.stdin.buffer.read(8 * words), dtype=np.int64)

    writes = read_block() == 1
    while (block := read_block()) is not None:
        if not block.size:
            simulator.reset_stats()
            continue
        rows = block.reshape(-1, len(writes))
        simulator.loadstore(pair(rows[:, ~writes], rows[:, writes]), length=8)
    twice = 0
    for level in simulator.levels(with_mem=False):
        if level.victims_to:  # what the cache names is every byte that it holds
            victims = level.victims_to.backend
            held = victims.sets * victims.ways - victims.count_invalid_entries()
            twice += held - len(victims.cached) // victims.cl_size
    print(json.dumps({"stats": list(simulator.stats()), "twice": twice}))


def speed(levels: dict) -> None:
    """Run so many iterations of the 5-point stream as each line of the input says."""
    for line in sys.stdin:
        i, row = np.arange(int(line)), 1000
        loads = np.stack([i + row - 1, i + row + 1, i, i + 2 * row], 1) * 8
        stream = pair(loads, (i + 10**8 + row)[:, None] * 8)
        simulator = CacheSimulator.from_dict(levels)[0]
        begin = time.process_time()
        simulator.loadstore(stream, length=8)
        print(time.process_time() - begin, flush=True)


def run_case(machines: Path, kernels: Path, machine: str, kernel: str, sizes: dict) -> dict:
    """Let Kerncraft simulate one kernel, without what it keeps on disk of earlier ones."""
    from kerncraft.cacheprediction import CacheSimulationPredictor
    from kerncraft.kernel import KernelCode
    from kerncraft.machinemodel import MachineModel

    model = MachineModel(path_to_yaml=str(machines / f"{machine}.yml"))
    code = KernelCode((kernels / f"{kernel}.c").read_text(), filename=f"{kernel}.c", machine=model)
    for name, value in sizes.items():
        code.set_constant(name, value)
    found = CacheSimulationPredictor.__new__(CacheSimulationPredictor)
    found.kernel, found.machine, found.cores = code, model, 1
    found.simulate()
    levels = [
        {"level": level.name, "sets": level.backend.sets, "ways": level.backend.ways,
         "cl_size": level.backend.cl_size, "write_back": bool(level.backend.write_back),
         "write_allocate": bool(level.backend.write_allocate),
         "replacement_policy": level.replacement_policy,
         "load_from": level.load_from.name if level.load_from else None,
         "store_to": level.store_to.name if level.store_to else None,
         "victims_to": level.victims_to.name if level.victims_to else None}
        for level in found.csim.levels(with_mem=False)
    ]  # fmt: skip
    return {
        "machine": machine, "kernel": kernel, "defines": sizes, "levels": levels,
        "loads": found.get_loads(), "hits": found.get_hits(), "misses": found.get_misses(),
        "stores": found.get_stores(), "evicts": found.get_evicts(),
    }  # fmt: skip


def run_cases(machines: Path, kernels: Path, seconds: float, out: Path) -> None:
    """Simulate kernels on machines in random order until the time is over."""
    cases = [(one, name, size) for one in MACHINES for name in SIZES for size in SIZES[name]]
    random.Random(77).shuffle(cases)
    begin = time.monotonic()
    os.chdir(tempfile.mkdtemp())
    found = []
    for case in cases:
        if time.monotonic() - begin > seconds:
            break
        found.append(run_case(machines, kernels, *case))
        out.write_text(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        folders = [Path(one).resolve() for one in (sys.argv[2], sys.argv[3], sys.argv[5])]
        run_cases(folders[0], folders[1], float(sys.argv[4]), folders[2])
    else:
        {"replay": replay, "speed": speed}[sys.argv[1]](json.loads(sys.argv[2]))
