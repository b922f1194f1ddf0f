"""What a microbenchmark finds, and why it does not find the rest."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import CacheFacts, Curve, InstructionFacts, MemoryFacts
from kernelcast.records.traits import Trait
from kernelcast.sampling.opencl import cl


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """Outcome of one microbenchmark; fields as in `MachineDescription`."""

    name: str
    duration_s: float
    instructions: tuple[InstructionFacts, ...] = ()
    caches: tuple[CacheFacts, ...] = ()
    memories: tuple[MemoryFacts, ...] = ()
    """Like instructions and caches, facts; those with the name of facts that are known already add
    to them."""
    warp_width: Trait[int] | None = None
    clock_hz: Trait[float] | None = None
    costs: Mapping[str, Trait[float]] = field(default_factory=dict)
    """By names that end in their unit."""
    curves: tuple[Curve, ...] = ()
    not_obtained: Mapping[str, str] = field(default_factory=dict)


class Findings:
    """A `BenchmarkResult` in the making; its clock runs from here on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.instructions: list[InstructionFacts] = []
        self.caches: list[CacheFacts] = []
        self.memories: list[MemoryFacts] = []
        self.costs: dict[str, Trait[float]] = {}
        self.curves: list[Curve] = []
        self.not_obtained: dict[str, str] = {}
        self.warp_width: Trait[int] | None = None
        self.clock_hz: Trait[float] | None = None
        self._start_s = time.perf_counter()

    @contextmanager
    def attempting(self, what: str) -> Iterator[None]:
        """Note an error of compiler, driver or measurement as the reason why `what` is missing."""
        try:
            yield
        except (KernelcastError, cl.Error) as error:
            self.not_obtained[what] = str(error)

    def result(self) -> BenchmarkResult:
        """Give what was found."""
        return BenchmarkResult(
            name=self.name,
            duration_s=time.perf_counter() - self._start_s,
            instructions=tuple(self.instructions),
            caches=tuple(self.caches),
            memories=tuple(self.memories),
            warp_width=self.warp_width,
            clock_hz=self.clock_hz,
            costs=self.costs,
            curves=tuple(self.curves),
            not_obtained=self.not_obtained,
        )
