"""Shipped GPU descriptions against microbenchmarks: bandwidths, latencies, clocks, L1 cycles.

``python benchmarks/gpu_microbenchmarks.py`` prints the deviations and writes
``benchmarks/results/gpu_families/microbenchmarks.md``.
"""

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gpu_family_cases import FOLDER

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes.warps import measure_addresses
from kernelcast.launches.machines import find_machine
from kernelcast.records.machine import MachineDescription

TARGET = Path(__file__).parent / "results/gpu_families/microbenchmarks.md"
SHIPPED = {
    "V100": "v100", "A100-40GB": "a100", "A100-80GB": "a100-80gb", "A100": "a100", "A40": "a40",
    "L40": "l40", "H100-PCIe": "h100-pcie", "H200": "h200", "GH200(H100 part)": "gh200",
    "MI100": "mi100", "MI210": "mi210", "MI300A": "mi300a", "MI300X": "mi300x",
    "RX6900XT": "rx-6900-xt", "RX6900XT(RDNA2)": "rx-6900-xt",
}  # fmt: skip
NOTABLE = 0.05
KIB = 1024
_HELD = 0.85
"""Part of a cache's bandwidth that marks the end of its plateau."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A number of a description and what a microbenchmark measured."""

    device: str
    what: str
    described: float
    measured: float
    source: str

    @property
    def deviation(self) -> float:
        """Described over measured, less one."""
        return self.described / self.measured - 1


def list_checks(tables: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Compare every table that says something of a shipped description."""
    makers = {
        "stream_occupancy": check_stream, "latency_chase": check_latency,
        "l1_size_sweep": check_l1, "l2_size_sweep": check_l2, "l1_strides": check_strides,
        "l1_strides_v100": check_v100_strides,
    }  # fmt: skip
    for table in tables:
        if table["family"] in makers and table["device"] in SHIPPED:
            machine = find_machine(SHIPPED[table["device"]])
            rows = [dict(zip(table["columns"], row, strict=False)) for row in table["rows"]]
            for what, described, measured in makers[table["family"]](machine, rows):
                if described and measured:
                    yield Check(
                        device=machine.id, what=what, described=described, measured=measured,
                        source=table["id"],
                    )  # fmt: skip


Found = Iterator[tuple[str, float, float]]


def check_stream(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Bandwidth of the DRAM at its best occupancy, and at half of that."""
    memory = machine.memory("global")
    if memory is None:
        return
    read = max(one.value for one in memory.load_bytes_per_s.values())
    yield "DRAM load, B/s", read, 1e9 * max(row["read_GBs"] for row in rows)
    if memory.copy_bytes_per_s is not None:
        copied = 1e9 * max(row["scale_GBs"] for row in rows)
        yield "DRAM copy, B/s", memory.copy_bytes_per_s.value, copied
    curve = machine.curve("saturation/global/load")
    units = machine.compute_units
    # Older tables count one work-group per unit however many ran.
    if curve is not None and units is not None and rows[0]["blocks_per_SM"] is not None:
        half = min(rows, key=lambda row: abs(row["occupancy_pct"] - 50))
        at = float(np.interp(half["total_threads"] / units.value, curve.x, curve.y))
        yield "DRAM load at half occupancy, B/s", at, 1e9 * half["read_GBs"]


def check_latency(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Latency of each level amid its plateau, and the clock."""
    l1, l2, memory = machine.cache("L1"), machine.cache("L2"), machine.memory("global")
    levels = [(l1, 0.3, 0.8), (l2, 0.3, 0.7)]
    clock_hz = 1e6 * statistics.median(row["clock_MHz"] for row in rows)
    if machine.clock_hz is not None:
        yield "clock, Hz", machine.clock_hz.value, clock_hz
    for cache, low, high in levels:
        if cache is None or cache.latency_s is None or cache.size_bytes is None:
            continue
        size = cache.size_bytes.value
        found = _median_latency(rows, low * size, high * size)
        if found:
            yield f"{cache.name} latency, s", cache.latency_s.value, found
    if memory is not None and memory.latency_s is not None:
        found = _median_latency(rows, 256 << 20, 1 << 40)
        if found:
            yield "DRAM latency, s", memory.latency_s.value, found


def _median_latency(
    rows: Sequence[Mapping[str, Any]], low_bytes: float, high_bytes: float
) -> float | None:
    values = [
        row["cycles_median"] / (1e6 * row["clock_MHz"])
        for row in rows
        if row["cycles_median"] and low_bytes <= KIB * row["buffer_kB"] <= high_bytes
    ]
    return statistics.median(values) if values else None


def check_l1(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Bandwidth of L1, and the size from which it falls."""
    cache = machine.cache("L1")
    if cache is None or cache.size_bytes is None:
        return
    size = cache.size_bytes.value
    inside = [r["effective_GBs"] for r in rows if KIB * r["data_set_per_SM_kB"] <= 0.6 * size]
    if not inside:
        return
    best = max(inside)
    if cache.load_bytes_per_s is not None:
        yield "L1 load, B/s", cache.load_bytes_per_s.value, 1e9 * best
    beyond = [
        r["data_set_per_SM_kB"]
        for r in rows
        if r["effective_GBs"] < _HELD * best and KIB * r["data_set_per_SM_kB"] > size / 2
    ]
    if beyond:
        yield "L1 size, B", size, KIB * min(beyond)


def check_l2(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Bandwidth of L2 where its data fits, and the size from which it falls."""
    cache = machine.cache("L2")
    if cache is None or cache.size_bytes is None or machine.compute_units is None:
        return
    shared = cache.shared_by.value if cache.shared_by else machine.compute_units.value
    size = cache.size_bytes.value * machine.compute_units.value / shared
    inside = [
        r["effective_GBs"] for r in rows if 0.15 * size <= KIB * r["data_set_kB"] <= 0.7 * size
    ]
    if not inside:
        return
    plateau = statistics.median(inside)
    if cache.load_bytes_per_s is not None:
        yield "L2 load, B/s", cache.load_bytes_per_s.value, 1e9 * plateau
    beyond = [
        r["data_set_kB"] for r in rows
        if KIB * r["data_set_kB"] > size / 2 and r["effective_GBs"] < _HELD * plateau
    ]  # fmt: skip
    if beyond:
        yield "L2 size, B", size, KIB * min(beyond)


def check_strides(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Cycles of a warp's load over strides and block shapes, geometric means of ratios."""
    gpu = read_machine(machine)
    lanes = np.arange(gpu.warp_width, dtype=np.int64)
    for kind, size in (("float", 4), ("double", 8)):
        if size == 8 and _is_slow_in_double(machine):
            continue  # additions, not loads, are what is timed
        logs = []
        for row in rows:
            if row["dtype"] != kind or row["kernel"] != "stride" or row["cycles_per_warp_load"] < 1:
                continue
            addresses = (lanes * row["param"] * size)[None, :]
            cycles = measure_addresses(addresses, size, gpu).cycles
            logs.append(np.log(cycles / row["cycles_per_warp_load"]))
        if logs:
            error = float(np.exp(np.mean(np.abs(logs))))
            yield f"L1 cycles over strides, {kind}: mean factor", error, 1.0


def check_v100_strides(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Cycles of a warp's load of doubles over strides."""
    gpu = read_machine(machine)
    lanes = np.arange(gpu.warp_width, dtype=np.int64)
    ways: dict[str, list[float]] = {"cycles": [], "half_warp_cycles": []}
    for row in rows:
        if "stride_doubles" in row:
            found = measure_addresses((lanes * row["stride_doubles"] * 8)[None, :], 8, gpu)
            for way, logs in ways.items():
                logs.append(np.log(getattr(found, way) / row["cycles_per_warp_load"]))
    for way, logs in ways.items():
        if logs:
            factor = float(np.exp(np.mean(np.abs(logs))))
            yield f"L1 {way.replace('_', ' ')} over strides, double: mean factor", factor, 1.0


def _is_slow_in_double(machine: MachineDescription) -> bool:
    single, double = machine.instruction("fp32"), machine.instruction("fp64")
    if single is None or double is None or not (single.peak_per_s and double.peak_per_s):
        return False
    return single.peak_per_s.value > 8 * double.peak_per_s.value


def main() -> None:
    """Print and write."""
    tables = json.loads((FOLDER / "microbenchmarks.json").read_text())["tables"]
    checks = sorted(list_checks(tables), key=lambda one: (one.device, one.what, one.source))
    notable = sum(abs(one.deviation) > NOTABLE for one in checks)
    lines = [
        "# Shipped GPU descriptions against microbenchmarks", "",
        f"{len(checks)} comparisons, {notable} of them off by more than {100 * NOTABLE:.0f} %. "
        "Cache sizes end where bandwidth falls; those of caches in halves are effective ones.", "",
        "| device | what | described | measured | deviation | source |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for one in checks:
        mark = "**" if abs(one.deviation) > NOTABLE else ""
        lines.append(
            f"| {one.device} | {one.what} | {one.described:.4g} | {one.measured:.4g} | "
            f"{mark}{100 * one.deviation:+.1f} %{mark} | {one.source} |"
        )
        if mark:
            sys.stdout.write(lines[-1] + "\n")
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
