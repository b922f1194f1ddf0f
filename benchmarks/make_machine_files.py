"""Writes the machine descriptions of GPUs from published figures: ``python`` this, then a folder.

The folder holds `warpspeed/measured_gpu_benches.json` (result files of RRZE-HPC/gpu-benches and
te42kyfo/gpu-benches). `published_gpus.py` holds the device table of the Warpspeed reference
implementation; `published_cpus.py` does the same for CPUs.
"""

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from published_gpus import (
    CDNA_DOCUMENT,
    CUDA,
    GPUS,
    MORE_CACHES,
    NVIDIA,
    OVERLAP_POWERS,
    TABLE,
    Gpu,
)

from kernelcast.launches.machine_file import write_machine
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import (
    CacheFacts,
    Curve,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.traits import Trait, TraitSource

TARGET = Path(__file__).parents[1] / "src/kernelcast/data/machines"
KIB, MIB = 2**10, 2**20
_DIGITS = 5
Number = TypeVar("Number", int, float)


def published(value: Number, origin: str) -> Trait[Number]:
    """Make a number that somebody published."""
    return Trait(value=_short(value), source=TraitSource.PUBLISHED, origin=origin)


def computed(value: float, origin: str) -> Trait[float]:
    """Make a number that follows from published ones."""
    return Trait(value=_short(value), source=TraitSource.COMPUTED, origin=origin)


def _short(value: Number) -> Number:
    return value if isinstance(value, int) else float(f"{value:.{_DIGITS}g}")


def describe_gpu(gpu: Gpu, benches: dict[str, Any]) -> MachineDescription:
    """Join a row of the table with the measurements of that GPU."""
    walk, clock_hz, walk_origin = _read_walk(gpu, benches)
    clock_origin = TABLE if gpu.clock_ghz else walk_origin
    items, groups, local_kib = NVIDIA.get(gpu.cc, (gpu.items, None, gpu.local_kib))
    limits = CUDA.format(gpu.cc) if gpu.cc else "100 % occupancy in gpu-benches' stream results"
    local = limits if gpu.cc else "AMD's ISA documents: 64 KiB of LDS per compute unit"
    memory, curves, more_costs = _read_memory(gpu, benches, walk)
    return MachineDescription(
        id=gpu.file,
        name=gpu.name,
        kind=DeviceKind.GPU,
        compute_units=published(gpu.units, gpu.origins.get("units", TABLE)),
        warp_width=published(gpu.warp, TABLE),
        clock_hz=published(clock_hz, clock_origin),
        max_work_group_size=published(1024, limits) if gpu.cc else None,
        max_work_items_per_unit=published(items, limits) if items else None,
        max_work_groups_per_unit=published(groups, limits) if groups else None,
        local_memory_bytes=published(local_kib * KIB, local) if local_kib else None,
        registers=_describe_registers(gpu, limits),
        instructions=_list_instructions(gpu, benches, clock_hz),
        caches=_list_caches(gpu, benches, walk, walk_origin),
        memories=(memory,),
        costs=more_costs | _describe_costs(gpu),
        curves=tuple(curves),
    )


def _describe_registers(gpu: Gpu, limits: str) -> Trait[int] | None:
    if gpu.registers:
        return published(gpu.registers, CDNA_DOCUMENT)
    return published(65536, limits) if gpu.cc else None


def _describe_costs(gpu: Gpu) -> dict[str, Trait[float]]:
    found = {}
    if gpu.dispatch is not None:
        found["work_group_dispatch_s"] = published(*gpu.dispatch)
    if gpu.file in OVERLAP_POWERS:
        found["overlap_power"] = computed(*OVERLAP_POWERS[gpu.file])
    return found


def _read_walk(gpu: Gpu, benches: dict[str, Any]) -> tuple[list[tuple[float, float]], float, str]:
    """Give latencies (bytes, seconds), the clock, and where they come from."""
    found = benches["latency"].get(gpu.data)
    if found is None:
        return [], (gpu.clock_ghz or 0) * 1e9, ""
    columns = found["columns"]
    place = columns.index(
        "latency_cycles_median" if "latency_cycles_median" in columns else "latency_cycles"
    )
    clock_hz = (gpu.clock_ghz or 0) * 1e9 or found["rows"][0][0] * 1e6
    rows = [
        (row[1] * KIB, row[place] / (row[0] * 1e6))
        for row in found["rows"]
        if len(row) > place and row[0] > 0
    ]
    return rows, clock_hz, f"gpu-latency, {found['source']}"


def _between(rows: Sequence[tuple[float, float]], low: float, high: float) -> float | None:
    """Give the median of a plateau."""
    values = [value for size, value in rows if low <= size <= high]
    return statistics.median(values) if values else None


def _list_instructions(
    gpu: Gpu, benches: dict[str, Any], clock_hz: float
) -> tuple[InstructionFacts, ...]:
    if gpu.lanes is None:
        return ()
    rule = f"compute units x clock x lanes, {TABLE}"
    facts: list[InstructionFacts] = []
    for name, lanes in zip(("fp32", "fp64"), gpu.lanes, strict=True):
        rate = gpu.units * clock_hz * lanes
        facts.extend((
            InstructionFacts(name=name, peak_per_s=computed(rate, rule)),
            InstructionFacts(name=f"{name}_fma", peak_per_s=computed(2 * rate, f"{rule} x 2")),
        ))  # fmt: skip
    if gpu.file == "v100":
        cycles = benches["incore_V100_README"]["DFMA_latency"]
        latency = {1: published(cycles / clock_hz, f"gpu-benches README: {cycles} cycles")}
        facts[-1] = InstructionFacts(
            name="fp64_fma", peak_per_s=facts[-1].peak_per_s, completion_latency_s=latency
        )
    return tuple(facts)


def _list_caches(
    gpu: Gpu, benches: dict[str, Any], walk: list[tuple[float, float]], walk_origin: str
) -> tuple[CacheFacts, ...]:
    loads = benches["cache_L1_L2"].get(gpu.data)
    rows = [(row[0] * KIB, row[1] * 1e9) for row in loads["rows"]] if loads else []
    l1, l2 = gpu.l1_kib * KIB, int(gpu.l2_mib * MIB)
    more = MORE_CACHES.get(gpu.file, ())
    below_l2 = max([l1, *(size * KIB for name, size, *_ in more if name < "L2")])
    l1_s, l2_s = _between(walk, 0, 0.6 * l1), _between(walk, 2 * below_l2, 0.6 * l2)
    l1_rate = _between(rows, min(8 * KIB, 0.25 * l1), 0.8 * l1)
    found = [
        CacheFacts(
            name="L1", size_bytes=published(l1, gpu.origins.get("L1", TABLE)),
            line_bytes=published(gpu.line, TABLE), sector_bytes=published(gpu.l1_sector, TABLE),
            shared_by=published(1, "one per compute unit"),
            latency_s=published(l1_s, walk_origin) if l1_s else None,
            load_bytes_per_s=published(l1_rate, f"gpu-cache, {loads['source']}") if l1_rate
            else None,
            write_policy="write-through",
        ),
        CacheFacts(
            name="L2", size_bytes=published(l2, gpu.origins.get("L2", TABLE)),
            line_bytes=published(gpu.line, TABLE), sector_bytes=published(gpu.l2_sector, TABLE),
            shared_by=_sharers(gpu),
            latency_s=published(l2_s, walk_origin) if l2_s else None,
            load_bytes_per_s=_l2_rate(gpu, benches), write_policy="write-back",
        ),
    ]  # fmt: skip
    found.extend(_more_cache(one, walk, walk_origin, l2) for one in more)
    return tuple(sorted(found, key=lambda one: one.name))


def _sharers(gpu: Gpu) -> Trait[int]:
    if gpu.l2_shared_by:
        return published(gpu.l2_shared_by, "one per XCD; AMD CDNA 3 white paper")
    return published(gpu.units, "one for the whole chip")


def _l2_rate(gpu: Gpu, benches: dict[str, Any]) -> Trait[Any] | None:
    if gpu.l2_gb_s:
        return published(gpu.l2_gb_s * 1e9, TABLE)
    found = benches["L2_bandwidth"].get(gpu.data)
    if not found:
        return None
    rows = [(row[1] * KIB, row[2] * 1e9) for row in found["rows"]]
    rate = _between(rows, 0.1 * gpu.l2_mib * MIB, 0.6 * gpu.l2_mib * MIB)
    return published(rate, f"gpu-l2-cache, {found['source']}") if rate else None


def _more_cache(
    about: tuple[str, int, int, str], walk: list[tuple[float, float]], origin: str, l2: int
) -> CacheFacts:
    name, size_kib, shared_by, told = about
    size = size_kib * KIB
    low = 2 * l2 if name == "L3" else size / 6
    latency_s = _between(walk, low, 0.6 * size)
    return CacheFacts(
        name=name,
        size_bytes=published(size, told),
        shared_by=published(shared_by, told),
        latency_s=published(latency_s, origin) if latency_s else None,
    )


def _read_memory(
    gpu: Gpu, benches: dict[str, Any], walk: list[tuple[float, float]]
) -> tuple[MemoryFacts, list[Curve], dict[str, Trait[float]]]:
    stream = benches["stream_DRAM"][gpu.data]
    origin = f"gpu-stream, {stream['source']}"
    rows = [row for row in stream["rows"] if len(row["GBs"]) == 6]
    # Columns: init, read, scale (one load, one store), triad and two stencils, all of fp64.
    reads, copies = (max(row["GBs"][place] for row in rows) * 1e9 for place in (1, 2))
    # Beyond any cache: the last tenth of the walk.
    far_s = statistics.median([value for _, value in walk[-max(1, len(walk) // 10) :]] or [0.0])
    memory = MemoryFacts(
        space="global",
        load_bytes_per_s={8: published(reads, f"{origin}, read")},
        copy_bytes_per_s=published(copies, f"{origin}, scale"),
        latency_s=published(far_s, f"gpu-latency, {benches['latency'][gpu.data]['source']}")
        if far_s
        else None,
    )
    curves = [_stream_curve("load", 1, rows, gpu.units), _stream_curve("copy", 2, rows, gpu.units)]
    if walk:
        curves.append(_walk_curve(walk))
    small = benches["small_kernels"].get(gpu.data)
    costs = {}
    if small:
        elements, rates = small["rows"][0]
        launch_s = 16 * elements / (max(rates) * 1e9)
        told = f"gpu-small-kernels, {small['source']}: back to back, {elements} elements"
        costs["launch_s"] = published(launch_s, told)
    return memory, curves, costs


def _stream_curve(name: str, place: int, rows: Sequence[dict[str, Any]], units: int) -> Curve:
    """Give the fastest measured rate at each number of work-items per compute unit."""
    best: dict[float, float] = {}
    for row in rows:
        items = float(round(row["cfg"][1] / units))
        best[items] = max(best.get(items, 0.0), row["GBs"][place] * 1e9)
    points = sorted(best.items())
    return Curve(
        name=f"saturation/global/{name}",
        x_name="concurrent work-items per compute unit",
        y_name="bytes per second",
        x=tuple(x for x, _ in points),
        y=tuple(_short(y) for _, y in points),
    )


def _walk_curve(walk: list[tuple[float, float]]) -> Curve:
    by_size: dict[float, list[float]] = {}
    for size, value in walk:
        by_size.setdefault(size, []).append(value)
    points = [(size, statistics.median(values)) for size, values in sorted(by_size.items())]
    kept = points[:: max(1, len(points) // 80)]
    return Curve(
        name="walk/global",
        x_name="size of the array in bytes",
        y_name="seconds per dependent load",
        x=tuple(float(round(x)) for x, _ in kept),
        y=tuple(_short(y) for _, y in kept),
    )


def main(folder: Path) -> None:
    """Write all files."""
    benches = json.loads((folder / "warpspeed/measured_gpu_benches.json").read_text())
    for gpu in GPUS:
        write_machine(TARGET / f"{gpu.file}.yaml", describe_gpu(gpu, benches))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
