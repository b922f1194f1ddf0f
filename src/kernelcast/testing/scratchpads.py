"""The SW26010 for examples and tests."""

from kernelcast.analytic.scratchpad.machine import ScratchpadMachine

SW26010 = ScratchpadMachine(
    id="sw26010",
    name="SW26010",
    clock_hz=1.45e9,
    bandwidth_bytes_per_s=32e9,
    transaction_bytes=256,
    delay_cycles=50,
    base_latency_cycles=220,
    latencies_cycles={"floating": 9, "fixed": 1, "spm": 3, "div_sqrt": 34},
    cpes_per_group=64,
    core_groups=4,
    spm_bytes=65536,
    gload_bytes=32,
)
"""Table I and Section II-A of the paper; a test compares it with the shipped file."""
