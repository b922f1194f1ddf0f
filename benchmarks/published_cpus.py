"""Writes the machine descriptions of CPUs from published figures: ``python`` this, then a folder.

The folder holds `kerncraft/cases.json` (cache hierarchies of Kerncraft's distribution). Bandwidths
are those of the benchmarks in Kerncraft's machine files IvyBridgeEP_E5-2690v2.yml and
SkylakeSP_Gold-6148.yml, one thread per core.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelcast.launches.machine_file import write_machine
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import (
    CacheFacts,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.traits import Trait, TraitSource

TARGET = Path(__file__).parents[1] / "src/kernelcast/data/machines"

# Bytes that move per byte that a benchmark counts: a store brings its line in first, unless the
# loop loads it anyway.
MOVED = {"copy": 1.5, "daxpy": 1.0, "load": 1.0, "triad": 1.25, "update": 1.0}
Rates = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Cpu:
    """A processor: GB/s as the benchmarks count them, floating-point operations per cycle."""

    file: str
    name: str
    key: str
    cores: int
    flops: Mapping[str, int]
    one_core: Rates
    memory: Mapping[str, float]


CPUS = (
    Cpu(
        file="ivy-bridge-ep", name="Xeon E5-2690 v2", key="IvyBridgeEP_E5-2690v2", cores=10,
        flops={"fp32": 16, "fp64": 8},
        one_core={
            "L1": {"copy": 92.67, "daxpy": 132.79, "load": 93.10, "triad": 118.64,
                   "update": 94.39},
            "L2": {"copy": 40.89, "daxpy": 49.67, "load": 35.06, "triad": 42.44, "update": 54.40},
            "L3": {"copy": 24.86, "daxpy": 35.33, "load": 26.99, "triad": 27.45, "update": 35.96},
            "MEM": {"copy": 12.13, "daxpy": 17.19, "load": 15.68, "triad": 12.17,
                    "update": 19.30},
        },
        memory={"copy": 31.50, "daxpy": 47.20, "load": 56.43, "triad": 38.56, "update": 42.96},
    ),
    Cpu(
        file="skylake-sp", name="Xeon Gold 6148", key="SkylakeSP_Gold-6148", cores=20,
        flops={"fp32": 32, "fp32_fma": 64, "fp64": 16, "fp64_fma": 32},
        one_core={
            "L1": {"copy": 270.23, "daxpy": 281.61, "load": 255.89, "triad": 253.88,
                   "update": 277.71},
            "L2": {"copy": 70.32, "daxpy": 103.66, "load": 110.92, "triad": 85.84,
                   "update": 88.71},
            "L3": {"copy": 24.32, "daxpy": 36.53, "load": 24.42, "triad": 24.52, "update": 48.12},
            "MEM": {"copy": 13.08, "daxpy": 20.31, "load": 14.32, "triad": 13.91,
                    "update": 24.85},
        },
        memory={"copy": 71.39, "load": 120.64, "triad": 87.69, "update": 99.64},
    ),
)  # fmt: skip


def describe_cpu(cpu: Cpu, cases: Mapping[str, Any]) -> MachineDescription:
    """Join the cache hierarchy of one socket with its bandwidths."""
    machine = cases["machines"][cpu.key]
    clock_hz = machine["clock"]["value"]
    origin = f"Kerncraft's machine file {cpu.key}"
    sizes = machine["cachesim sizes 1 core"]
    moved = {loop: rate * MOVED[loop] * 1e9 for loop, rate in cpu.memory.items()}
    costs = {
        f"{loop}_bytes_per_s": _published(rate, f"{origin}, {loop} benchmark, all lines that move")
        for loop, rate in sorted(moved.items())
        if loop not in {"load", "copy"}
    }
    for level, rates in cpu.one_core.items():
        for loop, rate in rates.items():
            # Between the core and its nearest cache no line is brought in for a store.
            factor = 1.0 if level == "L1" else MOVED[loop]
            costs[f"one_core_{level}_{loop}_bytes_per_s"] = _published(
                rate * factor * 1e9, f"{origin}, {loop} benchmark on one core"
            )
    return MachineDescription(
        id=cpu.file,
        name=cpu.name,
        kind=DeviceKind.CPU,
        compute_units=_published(cpu.cores, origin),
        clock_hz=_published(clock_hz, origin),
        instructions=tuple(
            InstructionFacts(
                name=name,
                peak_per_s=_computed(
                    flops * cpu.cores * clock_hz, f"{flops} per cycle and core, {origin}"
                ),
            )
            for name, flops in cpu.flops.items()
        ),
        caches=tuple(
            _describe_cache(level, sizes[level["level"]], clock_hz * cpu.cores, origin)
            for level in machine["memory hierarchy"][:-1]
        ),
        memories=(
            MemoryFacts(
                space="global",
                load_bytes_per_s={8: _published(moved["load"], f"{origin}, load benchmark")},
                copy_bytes_per_s=_published(
                    moved["copy"], f"{origin}, copy benchmark, all lines that move"
                ),
            ),
        ),
        costs=costs,
    )


def _describe_cache(
    level: Mapping[str, Any], size: int, cycles_per_s: float, origin: str
) -> CacheFacts:
    group = level["cache per group"]
    speed, duplex = level["upstream throughput"][:2]
    rate = None
    if isinstance(speed, dict):
        told = f"{speed['value']:g} B/cycle and core x cores x clock, {origin}"
        rate = _computed(speed["value"] * cycles_per_s, told)
    return CacheFacts(
        name=level["level"],
        size_bytes=_published(size, origin),
        line_bytes=_published(group["cl_size"], origin),
        ways=_published(group["ways"], origin),
        shared_by=_published(level["cores per group"], origin),
        load_bytes_per_s=rate,
        write_policy="write-back",
        is_victim=level["level"] == "L3" and not group["write_allocate"],
        is_full_duplex=duplex == "full-duplex" if rate else None,
    )


def _published(value: float, origin: str) -> Trait[Any]:
    return Trait(value=_short(value), source=TraitSource.PUBLISHED, origin=origin)


def _computed(value: float, origin: str) -> Trait[float]:
    return Trait(value=float(_short(value)), source=TraitSource.COMPUTED, origin=origin)


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.7g}")


def main(folder: Path) -> None:
    """Write all files."""
    cases = json.loads((folder / "kerncraft/cases.json").read_text())
    for cpu in CPUS:
        write_machine(TARGET / f"{cpu.file}.yaml", describe_cpu(cpu, cases))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
