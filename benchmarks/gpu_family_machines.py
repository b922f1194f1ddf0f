"""Descriptions of GPUs that are measured but not shipped, from a shipped sibling of each.

Numbers that vendors publish replace the sibling's; rates of memory and L2 are the sibling's times
the ratio of published peaks, so that the share of the peak that kernels reach is the sibling's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from kernelcast.launches.machines import find_machine
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.machine import CacheFacts, Curve, MachineDescription

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """How a GPU differs from a shipped one."""

    shipped: str
    units: int
    clock_ghz: float
    memory_ratio: float
    l1_bytes: int | None = None
    l2_mib: float | None = None
    fp32_lanes: int = 64
    fp64_lanes: int = 32
    items: int | None = None
    groups: int | None = None
    source: str = ""


# Peaks of memory in GB/s by the vendors' data sheets: V100 898, GH200 with HBM3 4023, A40 696,
# MI210 1638.
SIBLINGS: Mapping[str, Sibling] = {
    "RTX2080Ti": Sibling(
        shipped="a40", units=68, clock_ghz=1.35, memory_ratio=616 / 696, l1_bytes=64 * 1024,
        l2_mib=5.5, fp64_lanes=2, items=1024, groups=16,
        source="NVIDIA Turing white paper; base clock, which profilers hold: instructions over "
        "issue slots of the Coulomb records give 1.34 GHz",
    ),
    "RTX2080Ti boost": Sibling(
        shipped="a40", units=68, clock_ghz=1.635, memory_ratio=616 / 696, l1_bytes=64 * 1024,
        l2_mib=5.5, fp64_lanes=2, items=1024, groups=16, source="NVIDIA Turing white paper",
    ),
    "TITAN V": Sibling(
        shipped="v100", units=80, clock_ghz=1.455, memory_ratio=653 / 898, l2_mib=4.5,
        source="NVIDIA TITAN V data sheet",
    ),
    "V100S-PCIe-32GB": Sibling(
        shipped="v100", units=80, clock_ghz=1.597, memory_ratio=1134 / 898,
        source="NVIDIA V100S data sheet",
    ),
    "H100-NVL": Sibling(
        shipped="gh200", units=132, clock_ghz=1.785, memory_ratio=3938 / 4023, l2_mib=25,
        fp32_lanes=128, fp64_lanes=64, source="NVIDIA H100 NVL product brief",
    ),
    "MI250X(GCD)": Sibling(
        shipped="mi210", units=110, clock_ghz=1.7, memory_ratio=1.0, fp64_lanes=64,
        source="AMD Instinct MI250X data sheet, one of two dies",
    ),
}  # fmt: skip
SHIPPED = {"V100": "v100", "MI300A": "mi300a", "A40": "a40", "H200": "h200", "L40": "l40",
           "MI210": "mi210", "RX6900XT": "rx-6900-xt"}  # fmt: skip


@lru_cache
def describe(device: str) -> MachineDescription:
    """Give the description of a measured device."""
    if device in SHIPPED:
        return find_machine(SHIPPED[device])
    one = SIBLINGS[device]
    machine = find_machine(one.shipped)
    assert machine.compute_units is not None
    assert machine.clock_hz is not None
    cycles = one.units * one.clock_ghz * 1e9
    faster = cycles / (machine.compute_units.value * machine.clock_hz.value)

    def trait(value: float) -> Trait[float]:
        return Trait(value=value, source=TraitSource.PUBLISHED, origin=one.source)

    def count(value: int) -> Trait[int]:
        return Trait(value=value, source=TraitSource.PUBLISHED, origin=one.source)

    lanes = {"fp32": one.fp32_lanes, "fp32_fma": 2 * one.fp32_lanes, "fp64": one.fp64_lanes,
             "fp64_fma": 2 * one.fp64_lanes}  # fmt: skip
    caches: list[CacheFacts] = []
    for cache in machine.caches:
        ratio = faster if cache.name in {"L1", "L2"} else 1.0
        size = one.l1_bytes if cache.name == "L1" else None
        if cache.name == "L2" and one.l2_mib:
            size = int(one.l2_mib * MIB)
        caches.append(
            replace(
                cache,
                size_bytes=count(size) if size else cache.size_bytes,
                shared_by=count(one.units) if cache.name == "L2" else cache.shared_by,
                load_bytes_per_s=_scale(cache.load_bytes_per_s, ratio),
            )
        )
    return replace(
        machine,
        id=device.lower().replace(" ", "-"),
        name=device,
        compute_units=count(one.units),
        clock_hz=trait(one.clock_ghz * 1e9),
        max_work_items_per_unit=count(one.items) if one.items else machine.max_work_items_per_unit,
        max_work_groups_per_unit=(
            count(one.groups) if one.groups else machine.max_work_groups_per_unit
        ),
        instructions=tuple(
            replace(each, peak_per_s=trait(cycles * lanes[each.name]))
            if each.name in lanes
            else each
            for each in machine.instructions
        ),
        caches=tuple(caches),
        memories=tuple(
            replace(
                each,
                load_bytes_per_s={
                    size: trait(rate.value * one.memory_ratio)
                    for size, rate in each.load_bytes_per_s.items()
                },
                copy_bytes_per_s=_scale(each.copy_bytes_per_s, one.memory_ratio),
            )
            for each in machine.memories
        ),
        curves=tuple(_scale_curve(each, one.memory_ratio) for each in machine.curves),
    )


def _scale(trait: Trait[float] | None, factor: float) -> Trait[float] | None:
    return None if trait is None else replace(trait, value=trait.value * factor)


def _scale_curve(curve: Curve, factor: float) -> Curve:
    if not curve.name.startswith("saturation/global"):
        return curve
    return replace(curve, y=tuple(factor * one for one in curve.y), low=(), high=())
