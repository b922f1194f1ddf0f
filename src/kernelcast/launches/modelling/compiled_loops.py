"""In-core terms of what a C compiler makes of a loop: compiled here, found, and given to OSACA."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kernelcast.analytic.cpu.assembly_loops import AssemblyLoop, list_inner_loops
from kernelcast.analytic.cpu.in_core import InCoreTerms, OsacaProvider, require_osaca
from kernelcast.analytic.cpu.layer_conditions import LayerConditions
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.launches.modelling.cpu_loops import count_flops
from kernelcast.records.errors import InputError
from kernelcast.records.operations import OperationCounts
from kernelcast.sampling.loop_benchmark import FLAGS, RUN, LoopToRun, compile_to_assembly
from kernelcast.sampling.machine_state import read_processor

_NATIVE = "-march=native"
_OTHERWISE = "or take the instruction table (--core table)"


class MicroArchitecture(NamedTuple):
    """A generation of processors."""

    name: str
    target: str
    """Of ``-march=``, for gcc and clang."""
    family: int
    models: Collection[int]
    words: tuple[str, ...] = ()
    """Any of them in the name of a machine tells it, in small letters."""
    stands_for: str = ""
    """The newer one that it is taken for, as OSACA has no data of that; else empty."""


# Families and models as in Intel's Software Developer's Manual, volume 4, table 2-1, and in AMD's
# revision guides.
KNOWN = (
    MicroArchitecture("SNB", "sandybridge", 6, (0x2A, 0x2D), ("sandy bridge",)),
    MicroArchitecture("IVB", "ivybridge", 6, (0x3A, 0x3E), ("ivy bridge", "e5-2690 v2")),
    MicroArchitecture("HSW", "haswell", 6, (0x3C, 0x3F, 0x45, 0x46), ("haswell",)),
    MicroArchitecture("BDW", "broadwell", 6, (0x3D, 0x47, 0x4F, 0x56), ("broadwell",)),
    MicroArchitecture("SKX", "skylake-avx512", 6, (0x55,), ("skylake", "gold 61")),
    MicroArchitecture("CSX", "cascadelake", 6, (), ("cascade lake",)),
    MicroArchitecture("ICL", "icelake-client", 6, (0x7D, 0x7E), ("ice lake",)),
    MicroArchitecture("ICX", "icelake-server", 6, (0x6A, 0x6C)),
    MicroArchitecture("SPR", "sapphirerapids", 6, (0x8F,), ("sapphire rapids",)),
    MicroArchitecture("SPR", "sapphirerapids", 6, (0xAD, 0xAE, 0xCF), (), "later processors"),
    MicroArchitecture("ZEN1", "znver1", 0x17, range(0x30)),
    MicroArchitecture("ZEN2", "znver2", 0x17, range(0x30, 0x100)),
    MicroArchitecture("ZEN3", "znver3", 0x19, (*range(0x10), *range(0x20, 0x60))),
    MicroArchitecture("ZEN4", "znver4", 0x19, (*range(0x10, 0x20), *range(0x60, 0x100))),
    MicroArchitecture("ZEN4", "znver4", 0x1A, range(0x100), (), "Zen 5"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerChoice:
    """How a loop is compiled."""

    compiler: str = ""
    """A C compiler; the first that there is when empty."""
    flags: Sequence[str] = ()
    """For it; `FLAGS` with the machine's own target when empty."""
    architecture: str = ""
    """OSACA's name of the micro-architecture; found out when empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledLoop:
    """In-core terms of a compiled loop, an `InCoreProvider`."""

    loop: AssemblyLoop
    """The loop of the assembly that executes most of the source's."""
    iterations: int
    """Of the source's loop that one pass of it executes."""
    osaca: OsacaProvider
    whole: OperationCounts
    """What an iteration executes of which OSACA's terms are: of a loop that executes a part of it
    they are as much less."""
    notes: tuple[str, ...]

    @property
    def executes_all_sides(self) -> bool:
        """Whether it is certain that nothing within the loop is jumped over."""
        return not self.loop.jumps

    def predict(self, nest: LoopNest, iterations: float) -> InCoreTerms:
        """Give the terms of so many iterations."""
        share = _total(nest.executed) / _total(self.whole)
        terms = self.osaca.predict(nest, iterations * share)
        return replace(terms, notes=(*terms.notes, *self.notes))


def compile_loop(
    source: str,
    nest: LoopNest,
    machine: CpuMachine,
    constants: Mapping[str, int],
    choice: CompilerChoice,
) -> CompiledLoop:
    """Compile a loop, find it in the assembly, and ask OSACA."""
    require_osaca()
    bound = LayerConditions(nest, machine).bind(constants)
    architecture, target = choose_architecture(machine, choice.architecture)
    flags = choice.flags or [target if one == _NATIVE else one for one in FLAGS]
    compiler, assembly = compile_to_assembly(
        LoopToRun(
            source=source, constants={**nest.constants, **constants},
            array_bytes=sum(bound.array_bytes.values()), compiler=choice.compiler, flags=flags,
        )
    )  # fmt: skip
    # Only a loop within others can have been joined with its own next run.
    flops = count_flops(nest.executed) if len(nest.loops) > 1 else 0.0
    strides = [one.strides[-1] for one in bound.accesses]
    loop, iterations = find_loop(assembly, strides, flops, nest.name)
    if iterations > bound.trips[-1] > 0 and len(bound.trips) > 1:
        # Whole runs of the innermost loop, unrolled: of a row its ends do not count.
        row = max(
            abs(one.strides[-2] // one.strides[-1]) for one in bound.accesses if one.strides[-1]
        )
        iterations = bound.trips[-1] * max(1, round(iterations / max(1, row)))
    notes = [
        f"in the core: OSACA for {architecture.name} of the loop that {compiler} makes with "
        f"{' '.join(flags)}, {iterations} iterations a pass",
    ]
    if architecture.stands_for:
        notes.append(
            f"OSACA has no data of {architecture.stands_for}: {architecture.name} stands in for it"
        )
    if loop.jumps:
        notes.append(f"the compiled loop holds {loop.jumps} jumps: all sides are counted")
    if loop.calls:
        notes.append(f"the compiled loop calls {', '.join(loop.calls)}: the terms are lower bounds")
    osaca = OsacaProvider(loop.body, architecture=architecture.name, iterations=iterations)
    return CompiledLoop(
        loop=loop, iterations=iterations, osaca=osaca, whole=nest.executed, notes=tuple(notes)
    )


def choose_architecture(machine: CpuMachine, wanted: str = "") -> tuple[MicroArchitecture, str]:
    """Choose a machine's micro-architecture, and the compiler's flag for it."""
    processor = read_processor()
    own = find_by_generation(processor.generation)
    is_here = bool(processor.name) and processor.name in machine.name
    if wanted:
        found = next((one for one in KNOWN if one.name == wanted.upper()), None)
        if found is None:
            known = ", ".join(dict.fromkeys(one.name for one in KNOWN))
            msg = f"loops cannot be compiled for {wanted}; expected one of {known}"
            raise InputError(msg)
        return found, _NATIVE if own and found.name == own.name else f"-march={found.target}"
    if is_here and own:
        return own, _NATIVE
    told = f"{machine.id} {machine.name}".lower().replace("ivy-bridge", "ivy bridge")
    found = next((one for one in KNOWN if any(word in told for word in one.words)), None)
    if is_here or found is None:
        msg = (
            f"the micro-architecture of {machine.name} is not known, for neither its name nor "
            f"/proc/cpuinfo tells it; give OSACA's name of it (--architecture ICX), {_OTHERWISE}"
        )
        raise InputError(msg)
    return found, f"-march={found.target}"


def find_by_generation(generation: str) -> MicroArchitecture | None:
    """Find the one of a processor's family and model, such as ``6 85``; None if it is not known."""
    family, _, model = generation.partition(" ")
    if not (family.isdecimal() and model.isdecimal()):
        return None
    key = int(family), int(model)
    return next((one for one in KNOWN if one.family == key[0] and key[1] in one.models), None)


def find_loop(
    assembly: str, strides: Sequence[int], flops: float, name: str
) -> tuple[AssemblyLoop, int]:
    """Find the loop that executes most iterations a pass, and how many.

    Twice an iteration's `flops` and more are of several iterations of an outer loop, which the
    compiler joined.
    """
    loops = list_inner_loops(assembly, RUN)
    counted = [(one, one.count_iterations(strides)) for one in loops]
    found = [(one, count) for one, count in counted if count]
    if not found:
        moves = "; ".join(
            ", ".join(map(str, sorted(one.advances))) or "none" for one in loops
        )  # fmt: skip
        what = f"its inner loops move addresses by {moves} bytes" if loops else "it has no loop"
        msg = (
            f"{name}: the innermost loop, which moves addresses by "
            f"{', '.join(map(str, sorted(set(strides))))} bytes, is not found in the compiled "
            f"code: {what} (the compiler may have interchanged or unrolled loops, or called "
            f"memcpy); give its assembly (--assembly), other flags (--flags), {_OTHERWISE}"
        )
        raise InputError(msg)
    loop, iterations = max(found, key=lambda pair: pair[1])
    joined = round(loop.flops / (flops * iterations)) if flops else 1
    return loop, iterations * max(1, joined)


def _total(counts: OperationCounts) -> float:
    return sum(counts.operations.values()) + sum(counts.memory.values())
