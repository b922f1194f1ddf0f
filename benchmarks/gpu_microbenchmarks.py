"""Shipped GPU descriptions against microbenchmarks: bandwidths, latencies, clocks, L1 cycles.

``python -m benchmarks gpu_microbenchmarks`` prints the deviations and writes
``benchmarks/results/gpu_families/microbenchmarks.md``, with why descriptions deviate, and how far
arithmetic and memory overlap: the constant of `kernelcast.analytic.gpu.limiters.constants`.
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
from scipy.optimize import minimize_scalar

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes.warps import measure_addresses
from kernelcast.launches.machines import find_machine
from kernelcast.records.machine import MachineDescription

TARGET = Path(__file__).parent / "results/gpu_families/microbenchmarks.md"
SHIPPED = {
    "V100": "v100", "A100-40GB": "a100", "A100-80GB": "a100-80gb", "A100": "a100", "A40": "a40",
    "L40": "l40", "H100-PCIe": "h100-pcie", "H200": "h200", "GH200(H100 part)": "gh200",
    "MI100": "mi100", "MI210": "mi210", "MI300A": "mi300a", "MI300X": "mi300x",
    "RX6900XT": "rx-6900-xt", "RX6900XT(RDNA2)": "rx-6900-xt", "A100-40GB(alex)": "a100",
    "A40(alex)": "a40", "L40(genoa)": "l40",
}  # fmt: skip
NOTABLE = 0.05
KIB = 1024
_HELD = 0.85
"""Part of a cache's bandwidth that marks the end of its plateau."""
# Device, or all; what the name of a number begins with; why it deviates. The first one counts.
REASONS = (
    ("a40", "L1 size", "two tables differ: 140 and 236 kB; an eighth of the data may miss before "
     "bandwidth falls by 15 %"),
    ("", "L1 size", "bandwidth falls by 15 % only beyond the capacity, since a part of the data "
     "still hits; on AMD's GPUs L2 is nearly as fast, so that the end shows late"),
    ("rx-6900-xt", "L2 size by a stream", "the window leaves the Infinity Cache, not L2"),
    ("mi300a", "L2 size by a stream", "each of six dies has 4 MiB of its own, which data that all "
     "of them read fills more than once"),
    ("", "L2 size", "the descriptions hold what kernels find that also store, half of a cache in "
     "two halves; reads alone find more, and bandwidth falls by 15 % only beyond the capacity"),
    ("v100", "L1", "32 lanes at large strides: the model has as many cycles as lines meet in a "
     "bank, real ones fewer; the paper's count by half-warps is kept to compare with"),
    ("", "L1 cycles", "mean factor over all strides: real tag stages hash addresses, which the "
     "model does not know; AMD's lookups share more lines than it counts"),
    ("", "L1 load", "tables of one device differ by as much"),
    ("", "L2 load", "tables of one device differ by as much"),
    ("", "DRAM", "tables of one device differ by as much; the description follows the later one"),
    ("", "clock", "the chip ran above the clock of the device table, to which the other numbers of "
     "the description refer"),
    ("mi300x", "fp32", "the device table has no packed arithmetic, which the benchmark uses"),
    ("", "fp32", "the benchmark does not reach the rate of the lanes on these; why is not known"),
    ("", "launch", "the description's is the shortest of several ways to launch back to back"),
)  # fmt: skip


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


def find_reason(check: Check) -> str:
    """Give why a description deviates; nothing where nobody knows."""
    for device, begin, reason in REASONS:
        if device in {"", check.device} and check.what.startswith(begin):
            return reason
    return ""


def list_checks(tables: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Compare every table that says something of a shipped description."""
    makers = {
        "stream_occupancy": check_stream, "latency_chase": check_latency,
        "l1_size_sweep": check_l1, "l2_size_sweep": check_l2, "l1_strides": check_strides,
        "l1_strides_v100": check_v100_strides, "l2_stream": check_l2_stream,
        "roofline_power": check_roofline, "small_kernels": check_small,
    }  # fmt: skip
    for table in tables:
        is_odd = table["family"] == "small_kernels" and not _is_back_to_back(table)
        if table["family"] in makers and table["device"] in SHIPPED and not is_odd:
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


def check_l2_stream(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Size of L2 from which reads of a window fall, at full occupancy."""
    cache = machine.cache("L2")
    if cache is None or cache.size_bytes is None or machine.compute_units is None:
        return
    shared = cache.shared_by.value if cache.shared_by else machine.compute_units.value
    size = cache.size_bytes.value * machine.compute_units.value / shared
    most = max(row["occupancy_pct"] for row in rows)
    full = [row for row in rows if row["occupancy_pct"] > 0.95 * most and row["read_GBs_median"]]
    inside = [r["read_GBs_median"] for r in full if KIB * r["data_set_kB"] <= 0.7 * size]
    beyond = [
        r["data_set_kB"] for r in full
        if inside and r["read_GBs_median"] < _HELD * statistics.median(inside)
    ]  # fmt: skip
    if beyond:
        yield "L2 size by a stream, B", size, KIB * min(beyond)


def check_roofline(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Rate of multiply-adds in single precision, at the clock at which it was reached."""
    facts = machine.instruction("fp32_fma")
    if facts is None or facts.peak_per_s is None or machine.clock_hz is None:
        return
    per_cycle = max(row["GFlops"] / row["clock_MHz"] for row in rows) * 1e3
    described = facts.peak_per_s.value / machine.clock_hz.value
    yield "fp32 operations per cycle", described, per_cycle


def _is_back_to_back(table: Mapping[str, Any]) -> bool:
    """Tell launches one after the other from those of graphs, and of other ways to repeat."""
    return not any(word in table["id"] for word in ("_graph", "_gsync", "_pt"))


def check_small(machine: MachineDescription, rows: Sequence[Mapping[str, Any]]) -> Found:
    """Time of the smallest launch, and of starting a work-group of few work-items."""
    launch, dispatch = (
        machine.costs.get(name) for name in ("launch_s", "work_group_dispatch_s")
    )  # fmt: skip
    smallest = min(rows, key=lambda row: row["elements"])
    speeds = [value for name, value in smallest.items() if name.startswith("GBs") and value]
    if launch is not None and speeds:
        moved = KIB * smallest["working_set_kB"]
        yield "launch, s", launch.value, moved / (1e9 * statistics.median(speeds))
    if dispatch is not None:
        most = max(row["GBs_block32"] or 0.0 for row in rows)
        yield "start of a work-group, s", dispatch.value, 32 * 16 / (1e9 * most)


def fit_overlap(tables: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Find by device how arithmetic and memory overlap, and what is lost where both are as long.

    Only multiply-adds count as arithmetic: what a loop adds to them looks like lost overlap.

    The time of both together is the root of their powers' sum; the power is that with which it
    comes nearest to the measured times, mean of absolute logarithms.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for table in tables:
        if table["family"] != "roofline_power":
            continue
        rows = [dict(zip(table["columns"], row, strict=False)) for row in table["rows"]]
        for number in {row["device_index"] for row in rows}:
            own = [row for row in rows if row["device_index"] == number]
            found.setdefault(table["device"], []).append(_fit_power(own))
    return {
        device: (statistics.median(p for p, _ in own), statistics.median(loss for _, loss in own))
        for device, own in found.items()
    }


def _fit_power(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    bandwidth = max(row["GBs"] for row in rows)
    per_clock = max(row["GFlops"] / row["clock_MHz"] for row in rows)
    arithmetic = np.array([r["flop_per_byte"] / (per_clock * r["clock_MHz"]) for r in rows])
    measured = np.array([1 / row["GBs"] for row in rows])

    def measure(power: float) -> float:
        both = (arithmetic**power + bandwidth**-power) ** (1 / power)
        return float(np.abs(np.log(both / measured)).mean())

    best = minimize_scalar(measure, bounds=(1.5, 60.0), method="bounded")
    longer = np.maximum(arithmetic, 1 / bandwidth)
    return float(best.x), float((measured / longer).max() - 1)


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
    powers = fit_overlap(tables)
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
            sys.stdout.write(f"{lines[-1]} {find_reason(one) or 'NOT EXPLAINED'}\n")
    lines += ["", "## Why", ""]
    for _, check, reason in REASONS:
        own = [one for one in checks if abs(one.deviation) > NOTABLE and find_reason(one) == reason]
        if own:
            names = ", ".join(sorted({one.device for one in own}))
            lines.append(f"- {check} ({names}): {reason}.")
    lines += [
        "", "## How arithmetic and memory overlap", "",
        "| device | power | lost where both take as long, at most |", "|---|---|---|",
        *(f"| {name} | {power:.1f} | {100 * loss:.0f} % |" for name, (power, loss) in
          sorted(powers.items())),
        f"| median | {statistics.median(power for power, _ in powers.values()):.1f} | |",
    ]  # fmt: skip
    sys.stdout.write("\n".join(lines[-len(powers) - 3 :]) + "\n")
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
