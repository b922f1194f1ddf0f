"""A CPU of two cores as an OpenCL device, and launches whose accesses are written as text."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kernelcast.expressions.accesses import AccessKind, MemoryAccess, ModelledLaunch
from kernelcast.features.written_accesses import WrittenKernel, read_access, read_array
from kernelcast.launches.modelling.launches import model_written
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.machine import CacheFacts, InstructionFacts, MachineDescription, MemoryFacts
from kernelcast.records.ndrange import NDRange

Number = TypeVar("Number", int, float)


def _trait(value: Number) -> Trait[Number]:
    return Trait(value=value, source=TraitSource.MEASURED)


def _describe_cache(name: str, size: int, load: float) -> CacheFacts:
    return CacheFacts(
        name=name, size_bytes=_trait(size), line_bytes=_trait(64), shared_by=_trait(1),
        latency_s=_trait(1e-9), load_bytes_per_s=_trait(load), copy_bytes_per_s=_trait(load),
    )  # fmt: skip


def _describe_instruction(name: str, peak: float, width: int) -> InstructionFacts:
    """Describe instructions of 2 cycles at 4 GHz that a runtime issues for so many work-items."""
    latency = {chains: _trait(0.5e-9 / chains) for chains in (1, 2, 4)}
    issue = {chains: _trait(0.5e-9 / chains / width) for chains in (1, 2, 4)}
    return InstructionFacts(
        name=name, peak_per_s=_trait(peak), completion_latency_s=latency, issue_latency_s=issue
    )


def make_machine(width: int = 16) -> MachineDescription:
    """Describe two cores with 16 lanes of 32 bits, and a runtime that vectorises or does not."""
    rates = {
        "fp32": 256e9, "fp32_fma": 512e9, "fp64": 128e9, "fp64_fma": 256e9, "int32": 512e9,
        "special": 4e9, "native_special": 8e9,
    }  # fmt: skip
    return MachineDescription(
        id="two-cores",
        name="Two cores",
        kind=DeviceKind.CPU,
        compute_units=_trait(2),
        instructions=tuple(
            _describe_instruction(name, rate, width) for name, rate in rates.items()
        ),
        caches=(_describe_cache("L1", 2**15, 512e9), _describe_cache("L2", 2**20, 256e9)),
        memories=(
            MemoryFacts(
                space="global", load_bytes_per_s={4: _trait(40e9)}, copy_bytes_per_s=_trait(40e9),
                latency_s=_trait(1e-7),
            ),
        ),
        costs={
            "launch_s": _trait(5e-6), "work_group_dispatch_s": _trait(1e-9),
            "barrier_s": _trait(1e-9), "atomic_local_distinct_per_s": _trait(1e9),
            "atomic_global_distinct_per_s": _trait(1e8),
        },
    )  # fmt: skip


def make_launch(
    arrays: Sequence[str],
    *,
    loads: Sequence[str] = (),
    stores: Sequence[str] = (),
    size: tuple[int, ...] = (2**20,),
    local: tuple[int, ...] = (64,),
    operations: Mapping[str, float] | None = None,
) -> ModelledLaunch:
    """Make a launch of accesses as text."""
    read = {one.name: one for one in (read_array(text) for text in arrays)}
    accesses: list[MemoryAccess] = []
    for kind, texts in ((AccessKind.LOAD, loads), (AccessKind.STORE, stores)):
        for text in texts:
            accesses.append(read_access(text, read, kind=kind, site=len(accesses)))
    kernel = WrittenKernel(
        name="test", arrays=tuple(read.values()), accesses=tuple(accesses),
        operations=operations or {},
    )  # fmt: skip
    return model_written(kernel, NDRange(global_size=size, local_size=local)).launch()


TRIAD = make_launch(
    [f"{name}:float32:1048576" for name in "abc"], loads=["b[x]", "c[x]"], stores=["a[x]"]
)
