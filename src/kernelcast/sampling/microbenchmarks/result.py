"""What one microbenchmark has found: a part of a machine description."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelcast.records.machine import CacheFacts, Curve, InstructionFacts, MemoryFacts
from kernelcast.records.traits import Trait


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """Outcome of one microbenchmark; fields as in `MachineDescription`.

    Parameters
    ----------
    instructions, caches, memories : tuple
        Facts; those with the name of facts that are known already add to them.
    costs : mapping of str to Trait of float
        By names that end in their unit.
    """

    name: str
    duration_s: float
    instructions: tuple[InstructionFacts, ...] = ()
    caches: tuple[CacheFacts, ...] = ()
    memories: tuple[MemoryFacts, ...] = ()
    warp_width: Trait[int] | None = None
    clock_hz: Trait[float] | None = None
    costs: Mapping[str, Trait[float]] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()
    not_obtained: Mapping[str, str] = field(default_factory=dict)
