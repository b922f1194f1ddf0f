"""A CPU device as OpenCL kernels meet it: rates per core, in seconds, from its calibration."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from kernelcast.records.device import DeviceKind, Trait
from kernelcast.records.machine import (
    CacheFacts,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
    refuse_missing,
)

_USUAL_LANES = 8
"""32-bit lanes of a 256-bit register, which all x86-64 cores of the last ten years have."""
_NEARLY = 1.05
"""Tolerance of ratios that tell how many lanes and cores there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCosts:
    """Costs of single-precision functions on a runtime.

    Compilers turn a function into very different code: Intel's runtime has vector versions of all
    and divides by Newton steps; PoCL has vector versions of few, and calls the others once per
    lane; on llvmpipe a division takes as long as thirty additions. Their ratios to the calibrated
    cosine, and to an addition, belong to the compiler more than to the processor: measured by
    `benchmarks/operation_costs.py` on an EPYC with AVX-512, no kernel of the corpus among what was
    run. What other programs took of the processor meanwhile is the ratio of the cosine to its
    calibrated time, and is divided out.
    """

    divider_adds: Mapping[str, float]
    divider_vector_adds: Mapping[str, float]
    """Time of divisions and roots, in scalar additions and per vector in vector additions."""
    scalar: Mapping[str, float]
    vector: Mapping[str, float]
    """Time of other functions, in calibrated cosines (native ones: in calibrated native cosines) of
    scalars and of vectors."""
    never_jumps: bool = False
    """Whether both sides of every condition are gone through, under masks."""
    gathers_narrowed: bool = False
    """Whether lanes are gathered whose indices pass through 32 bits."""

    @property
    def by_lane(self) -> frozenset[str]:
        """Functions that are called once per lane of a vector."""
        return frozenset(self.scalar) - frozenset(self.vector)


@lru_cache(maxsize=1)
def read_function_costs() -> Mapping[str, FunctionCosts]:
    """Read what was measured, by runtime; what a vector takes is as for scalars if left out.

    Of ``others``, which were not measured, divisions and roots are told in passes through the
    divider, and functions without a time for vectors have no vector version in libraries.
    """
    text = (resources.files(__package__) / "functions.json").read_text(encoding="utf-8")
    return {
        name: FunctionCosts(**{
            "divider_vector_adds": one["divider_adds"], "vector": one["scalar"], **one
        })
        for name, one in json.loads(text).items()
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCache:
    """A cache, or memory behind all of them."""

    name: str
    """``L1`` to ``L3``, or ``DRAM``."""
    size_bytes: float
    """What one busy core has of it while all cores are busy; infinite for memory."""
    reach_bytes: float
    """What a core that is busy alone has of it."""
    latency_s: float
    """Of a dependent load that it answers."""
    load_s_per_byte: float
    store_s_per_byte: float
    """Time of all cores together to move a byte to and from the nearer level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuDevice:
    id: str
    cores: int
    levels: tuple[DeviceCache, ...]
    """Caches, nearest first, then memory."""
    line_bytes: int
    lanes: int
    """32-bit lanes that take as long as a scalar does."""
    width: int
    """Work-items that the runtime runs in lock-step in any kernel; 1 if it leaves that to a
    compiler that vectorises plain loops."""
    instructions: Mapping[str, InstructionFacts]
    costs: Mapping[str, float]
    functions: FunctionCosts | None = None
    """What its runtime makes of functions; None where that was not measured."""
    notes: tuple[str, ...] = ()

    def instruction_s(self, kind: str, bits: int = 32) -> float | None:
        """Compute the time of an instruction on one core, scalar or vector; None if not known."""
        facts = self.instructions.get(kind)
        if facts is None or facts.peak_per_s is None:
            return None
        return self.cores * self.lanes_of(bits) / facts.peak_per_s.value

    @property
    def add_s(self) -> float:
        """Time of a scalar single-precision addition on one core, if none waits."""
        return self.instruction_s("fp32") or 0.0

    @property
    def never_jumps(self) -> bool:
        return self.functions is not None and self.functions.never_jumps

    @property
    def has_masks(self) -> bool:
        """Whether registers are of 512 bits, which come with masks for their lanes."""
        return self.width >= 16

    def lanes_of(self, bits: int) -> int:
        return max(1, self.lanes * 32 // max(32, bits))


def read_device(description: MachineDescription) -> CpuDevice:
    description.require_kind(DeviceKind.CPU)
    fp32 = description.instruction("fp32")
    if fp32 is None or fp32.peak_per_s is None or 1 not in fp32.completion_latency_s:
        refuse_missing(description.name, "throughput and latency of fp32", "instructions-fp32")
    # llvmpipe reports 8 compute units on two processors. One core reaches at least the rate of four
    # independent chains, so that the peak of all tells how many there are at most: 1.98 were once
    # measured on two.
    cores = description.compute_units.value if description.compute_units else 1
    if issue := fp32.issue_latency_s:
        most = int(_NEARLY * fp32.peak_per_s.value * issue[max(issue)].value)
        cores = max(1, min(cores, most))
    if not description.caches:
        refuse_missing(description.name, "the size of its caches", "caches")
    notes: list[str] = []
    # Compare the best rate of vectors with the rate of one work-item's independent scalars.
    lanes, most = _USUAL_LANES, max(fp32.completion_latency_s)
    if most == 1:
        notes.append(f"width of vector registers not known, taken as {_USUAL_LANES} times 32 bits")
    else:
        scalars_per_s = cores / fp32.completion_latency_s[most].value
        ratio = max(1.0, fp32.peak_per_s.value / scalars_per_s)
        # The scalars wait for each other still: on five calibrated devices the ratio is 1.3 to 1.5
        # times the lanes where they do, and equals them where they do not.
        lanes = int(2 ** math.floor(math.log2(_NEARLY * ratio)))
    levels: list[DeviceCache] = []

    def add_level(
        name: str, size: float, reach: float, facts: CacheFacts | MemoryFacts,
        load: Trait[float] | None,
    ) -> None:  # fmt: skip
        copy, load_s, store_s = facts.copy_bytes_per_s, 0.0, 0.0
        if load or copy:  # a copy is one load and one store
            both_s = 2 / copy.value if copy else 2 / load.value  # type: ignore[union-attr]  # one is there
            load_s = min(1 / load.value, both_s) if load else both_s / 2
            store_s = max(both_s - load_s, load_s)
        levels.append(
            DeviceCache(
                name=name, size_bytes=size, reach_bytes=reach, load_s_per_byte=load_s,
                store_s_per_byte=store_s,
                latency_s=facts.latency_s.value if facts.latency_s else 0.0,
            )
        )  # fmt: skip

    for cache in description.caches:
        if cache.size_bytes is None:
            refuse_missing(description.name, f"caches.{cache.name}.size_bytes", "caches")
        shared = cache.shared_by.value if cache.shared_by else 1
        size = float(cache.size_bytes.value)
        add_level(cache.name, size / min(cores, shared), size, cache, cache.load_bytes_per_s)
    memory = description.memory("global")
    if memory is None or not memory.load_bytes_per_s:
        refuse_missing(description.name, "the bandwidth of global memory", "bandwidth")
    # The largest of seven noisy figures, by the bytes of an element, would err to the high side.
    ordered = sorted(memory.load_bytes_per_s.values(), key=lambda one: one.value)
    add_level("DRAM", math.inf, math.inf, memory, ordered[len(ordered) // 2])
    width = 1
    together = fp32.issue_latency_s.get(1)
    if description.warp_width is not None:
        width = description.warp_width.value
    elif together is not None:
        ratio = fp32.completion_latency_s[1].value / together.value
        width = min(lanes, int(2 ** max(0, round(math.log2(ratio)))))
    return CpuDevice(
        id=description.id,
        cores=cores,
        levels=tuple(levels),
        line_bytes=line.value if (line := description.caches[0].line_bytes) else 64,
        lanes=lanes,
        width=width,
        instructions={one.name: one for one in description.instructions},
        costs={name: cost.value for name, cost in description.costs.items()},
        functions=read_function_costs().get(description.platform),
        notes=tuple(notes),
    )
