"""Machine descriptions of CPUs for tests."""

from kernelcast.analytic.cpu.machine import CpuCache, CpuMachine, StreamRates

IVY_BRIDGE = CpuMachine(
    id="ivy-bridge-ep",
    name="Xeon E5-2690 v2",
    cores=10,
    clock_hz=3e9,
    caches=(
        CpuCache(name="L1", size_bytes=2**15, line_bytes=64, ways=8),
        CpuCache(name="L2", size_bytes=2**18, line_bytes=64, ways=8, cycles_per_line=2),
        CpuCache(
            name="L3", size_bytes=25 * 2**20, line_bytes=64, ways=16, shared_by=10,
            cycles_per_line=2,
        ),
    ),
    streams=StreamRates(
        one_core={
            "L1": {"copy": 137.1e9}, "L2": {"copy": 68.4e9}, "L3": {"copy": 38.8e9},
            "MEM": {"copy": 17.9e9},
        },
        all_cores={"MEM": {"copy": 47.25e9, "load": 56.43e9, "triad": 48.2e9}},
        cores=10,
    ),
)  # fmt: skip
"""The paper's Ivy Bridge, with the bandwidths of its Table 1."""
