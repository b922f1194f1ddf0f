"""Asks the CPU models for loop nests: traffic, in-core terms by OSACA or tables, ECM, Roofline."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from math import prod
from string import Template
from typing import Any, NamedTuple

from llvmlite.binding import get_host_cpu_name

from kernelcast.analytic.cpu.assembly_loops import AssemblyLoop, list_inner_loops
from kernelcast.analytic.cpu.ecm import (
    EcmPrediction,
    RooflinePrediction,
    Unit,
    Work,
    predict_ecm,
    predict_roofline,
)
from kernelcast.analytic.cpu.in_core import (
    InCoreProvider,
    InCoreTerms,
    ask_osaca,
    predict_by_table,
    require_osaca,
)
from kernelcast.analytic.cpu.layer_conditions import list_conflicts, predict_by_layers
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.analytic.cpu.simulated import predict_by_simulation
from kernelcast.analytic.cpu.streams import bind
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.loop_nest import IterationSpace, LoopNest, list_outcomes
from kernelcast.features.loop_nest import Listing
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.errors import InputError
from kernelcast.records.operations import (
    NumberClass,
    OperationCounts,
    OperationKind,
    add_weighted,
)
from kernelcast.records.plain import pick, to_plain
from kernelcast.sampling import read_source
from kernelcast.sampling.host import read_processor
from kernelcast.sampling.loop_benchmark import FLAGS, RUN, compile_to_assembly

_FLOPS = {
    OperationKind.ADD: 1, OperationKind.MULTIPLY: 1, OperationKind.FUSED: 2,
    OperationKind.DIVIDE: 1, OperationKind.SPECIAL: 1, OperationKind.SPECIAL_NATIVE: 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPrediction:
    constants: Mapping[str, int]
    cores: int
    volumes: CacheVolumes
    """Traffic of one of them."""
    in_core: InCoreTerms | None
    ecm: EcmPrediction
    roofline: RooflinePrediction | None
    """Of all busy cores together; None without in-core terms."""
    work: Work
    least_cycles: float
    most_cycles: float
    """Between which the ECM model's cycles lie whatever data decide, and whether branches are
    jumped over or both sides are executed under a mask. Without branches both are `cycles`."""

    @property
    def cycles(self) -> float:
        """Core cycles per cache line of work of all busy cores together, by the ECM model."""
        return self.ecm.cycles_of(self.cores)

    def value(self, unit: Unit) -> float:
        return self.work.tell(self.cycles, unit)

    @property
    def notes(self) -> tuple[str, ...]:
        roofline = self.roofline.notes if self.roofline is not None else ()
        return tuple(dict.fromkeys((*self.ecm.notes, *roofline)))


@dataclass(kw_only=True)
class LoopModel:
    nest: LoopNest
    machine: CpuMachine
    predictor: str = "lc"
    """``lc`` for layer conditions, ``sim`` for the cache simulator."""
    in_core: InCoreProvider | None = None

    def __post_init__(self) -> None:
        nearest = self.machine.caches[0].name
        knows_loads = self.machine.streams.reached(nearest, 1.0, 0.0, 1) is not None
        if self.in_core is None and knows_loads:
            self.in_core = partial(predict_by_table, self.machine)

    def _count_traffic(self, constants: Mapping[str, int], cores: int) -> CacheVolumes:
        predict = predict_by_simulation if self.predictor == "sim" else predict_by_layers
        return predict(self.nest, self.machine, constants, cores)

    @cached_property
    def _outcomes(self) -> "list[LoopModel]":
        if not self.nest.decisions:
            return [self]
        return [replace(self, nest=one) for one in list_outcomes(self.nest)]

    def predict(self, constants: Mapping[str, int], cores: int = 1) -> LoopPrediction:
        trips = bind(self.nest, constants).trips
        mean = self._weigh(constants, has_masks=False)
        volumes = self._count_traffic(constants, cores)
        terms, ecm = self.time(volumes, constants, has_masks=True)
        every = [ecm.cycles_of(cores)]
        is_known = isinstance(self.in_core, CompiledLoop) and self.in_core.executes_all_sides
        for one in self._outcomes if self.nest.has_branches else ():
            moved = volumes if one is self else one._count_traffic(constants, cores)
            every.append(predict_ecm(moved, self.machine, terms).cycles_of(cores))
            every += [
                one.time(moved, constants, has_masks=has_masks)[1].cycles_of(cores)
                for has_masks in (() if is_known else (False, True))
            ]
        return LoopPrediction(
            constants={**self.nest.constants, **constants},
            cores=cores,
            volumes=volumes,
            in_core=terms,
            ecm=ecm,
            roofline=(
                predict_roofline(volumes, self.machine, terms, cores=cores)
                if terms is not None
                else None
            ),
            work=Work(
                clock_hz=self.machine.clock_hz,
                iterations_per_line=volumes.iterations,
                flops_per_iteration=count_flops(mean),
                iterations=float(prod(trips)),
            ),
            least_cycles=min(every),
            most_cycles=max(every),
        )

    def time(
        self, volumes: CacheVolumes, constants: Mapping[str, int], *, has_masks: bool
    ) -> tuple[InCoreTerms | None, EcmPrediction]:
        """Give the time in the core and of one core, with or without masks."""
        terms = None
        if self.in_core is not None:
            executed = self._weigh(constants, has_masks=has_masks)
            terms = self.in_core(replace(self.nest, executed=executed), volumes.iterations)
        return terms, predict_ecm(volumes, self.machine, terms)

    def _weigh(self, constants: Mapping[str, int], *, has_masks: bool) -> OperationCounts:
        nest = self.nest
        if not nest.branches:
            return nest.executed
        space = IterationSpace(nest.loops, nest.bind_constants(constants), nest.taken)
        share = space.share_of_rows if has_masks else space.share
        return add_weighted([
            (nest.executed, 1.0), *((counts, share(one) - 1) for one, counts in nest.branches)
        ])  # fmt: skip

    def scale(self, constants: Mapping[str, int]) -> list[dict[str, Any]]:
        """Predict one core to all, with shared caches (paper, section 3.2)."""
        in_core, rows = self.predict(constants).in_core, []
        for cores in range(1, self.machine.cores + 1):
            ecm = predict_ecm(self._count_traffic(constants, cores), self.machine, in_core)
            cycles = ecm.cycles_of(cores)
            is_saturated = cycles <= ecm.memory_cycles
            rows.append({"cores": cores, "cycles": cycles, "is_saturated": is_saturated})
        return rows

    def conflicts(self, constants: Mapping[str, int]) -> tuple[str, ...]:
        """Say where rows compete for few sets of a cache, which only a simulation sees."""
        return () if self.predictor == "sim" else list_conflicts(self.nest, self.machine, constants)


def count_flops(executed: OperationCounts) -> float:
    """Count the floating-point operations of an iteration; a fused multiply-add is two."""
    return sum(
        executed.count(kind, number=NumberClass.FLOAT, per_lane=True) * flops
        for kind, flops in _FLOPS.items()
    )


def prediction_to_json(found: LoopPrediction, unit: Unit) -> dict[str, object]:
    """Give one size; cycles are core cycles per cache line of work."""
    terms, roofline, ecm = found.in_core, found.roofline, found.ecm
    return {
        **pick(found, "constants", "cores", cache_predictor="volumes.predictor"),
        "unit": unit.value,
        "value": found.value(unit),
        **pick(found, "least_cycles", "most_cycles", iterations_per_line="volumes.iterations"),
        "levels": [pick(one, "name", "hits", "misses", "evicts") for one in found.volumes.levels],
        "in_core": terms and to_plain(terms, omit=("notes",)),
        "ecm": {
            "notation": ecm.notation(),
            "transfers": [asdict(one) for one in ecm.transfers],
            "cumulative": list(ecm.cumulative()),
            **pick(ecm, "cycles", "saturation_cores", "ideal_saturation_cores"),
        },
        "roofline": roofline and {
            **pick(roofline, "cycles", bottleneck="bottleneck.level"),
            "ceilings": [asdict(one) for one in roofline.ceilings],
        },
        "notes": list(found.notes),
    }  # fmt: skip


_NATIVE = "-march=native"
_OTHERWISE = "or take the instruction table (--core table)"


class MicroArchitecture(NamedTuple):
    name: str
    target: str
    """What LLVM calls it, and ``-march=`` of gcc and clang."""
    words: tuple[str, ...] = ()
    """Any of them in the name of a machine tells it, in small letters."""
    stands_for: str = ""
    """The newer one that it is taken for, as OSACA has no data of that; else empty."""


KNOWN = (
    MicroArchitecture("SNB", "sandybridge", ("sandy bridge",)),
    MicroArchitecture("IVB", "ivybridge", ("ivy bridge", "e5-2690 v2")),
    MicroArchitecture("HSW", "haswell", ("haswell",)),
    MicroArchitecture("BDW", "broadwell", ("broadwell",)),
    MicroArchitecture("SKX", "skylake-avx512", ("skylake", "gold 61")),
    MicroArchitecture("CSX", "cascadelake", ("cascade lake",)),
    MicroArchitecture("ICL", "icelake-client", ("ice lake",)),
    MicroArchitecture("ICX", "icelake-server"),
    MicroArchitecture("SPR", "sapphirerapids", ("sapphire rapids",)),
    *(
        MicroArchitecture("SPR", target, (), "later processors")
        for target in ("emeraldrapids", "graniterapids", "graniterapids-d")
    ),
    *(MicroArchitecture(f"ZEN{number}", f"znver{number}") for number in range(1, 5)),
    MicroArchitecture("ZEN4", "znver5", (), "Zen 5"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledLoop:
    """In-core terms of a compiled loop, an `InCoreProvider`."""

    loop: AssemblyLoop
    """The loop of the assembly that executes most of the source's."""
    iterations: int
    """Of the source's loop that one pass of it executes."""
    osaca: InCoreProvider
    whole: OperationCounts
    """What an iteration executes of which OSACA's terms are: of a loop that executes a part of it
    they are as much less."""
    notes: tuple[str, ...]

    @property
    def executes_all_sides(self) -> bool:
        """Whether it is certain that nothing within the loop is jumped over."""
        return not self.loop.jumps

    def __call__(self, nest: LoopNest, iterations: float) -> InCoreTerms:
        share = _total(nest.executed) / _total(self.whole)
        terms = self.osaca(nest, iterations * share)
        return replace(terms, notes=(*terms.notes, *self.notes))


def write_program(listing: Listing) -> str:
    parts = {
        "directives": listing.directives,
        "arrays": [
            f"static {kind} {name}{''.join(f'[{one}]' for one in sizes)} "
            "__attribute__((aligned(64)));"
            for name, (kind, sizes) in listing.arrays.items()
        ],
        "fill": [
            f"    for (size_t n = 0; n < sizeof {name} / sizeof({kind}); ++n)\n"
            f"        (({kind} *){name})[n] = ({kind})(1 + n % 7 * kc_value);"
            for name, (kind, _) in listing.arrays.items()
        ],
        "scalars": [
            f"    {kind} {name} = {value or f'({kind})kc_value'};"
            for name, (kind, value) in listing.scalars.items()
        ],
        "keep": [f"    kc_sink = (double){name};" for name in listing.scalars],
    }
    return Template(read_source("loop_benchmark.c.template")).substitute(
        loop=listing.loop, **{key: "\n".join(lines) for key, lines in parts.items()}
    )


def write_loop(
    source: str, nest: LoopNest, constants: Mapping[str, int], flags: Sequence[str]
) -> tuple[str, list[str]]:
    """Write the program that runs a loop, and the options that it is compiled with."""
    constants = {**nest.constants, **constants}
    values = bind_names(constants)
    options = [*(flags or FLAGS), *(f"-D{name}={value}" for name, value in constants.items())]
    # Larger static arrays do not fit the usual code model of x86-64.
    if sum(nest.count_bytes(one, values) for one in nest.arrays) >= 2**30:
        options.append("-mcmodel=medium")
    return write_program(Listing(source, nest.name)), options


def compile_loop(
    source: str,
    nest: LoopNest,
    machine: CpuMachine,
    constants: Mapping[str, int],
    *,
    compiler: str = "",
    flags: Sequence[str] = (),
    architecture: str = "",
) -> CompiledLoop:
    """Compile a loop, find it in the assembly, and ask OSACA; what is left out is found out."""
    require_osaca()
    bound = bind(nest, constants)
    found, target = choose_architecture(machine, architecture)
    flags = flags or [target if one == _NATIVE else one for one in FLAGS]
    program, options = write_loop(source, nest, constants, flags)
    compiler, assembly = compile_to_assembly(program, options, compiler)
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
        f"in the core: OSACA for {found.name} of the loop that {compiler} makes with "
        f"{' '.join(flags)}, {iterations} iterations a pass",
    ]
    if found.stands_for:
        notes.append(f"OSACA has no data of {found.stands_for}: {found.name} stands in for it")
    if loop.jumps:
        notes.append(f"the compiled loop holds {loop.jumps} jumps: all sides are counted")
    if loop.calls:
        notes.append(f"the compiled loop calls {', '.join(loop.calls)}: the terms are lower bounds")
    osaca = ask_osaca(loop.body, architecture=found.name, iterations=iterations)
    return CompiledLoop(
        loop=loop, iterations=iterations, osaca=osaca, whole=nest.executed, notes=tuple(notes)
    )


def choose_architecture(machine: CpuMachine, wanted: str = "") -> tuple[MicroArchitecture, str]:
    """Choose a machine's micro-architecture, and the compiler's flag for it."""
    own = next((one for one in KNOWN if one.target == get_host_cpu_name()), None)
    here = read_processor().name
    is_here = bool(here) and here in machine.name
    if wanted:
        found = next((one for one in KNOWN if one.name == wanted.upper()), None)
        if found is None:
            known = ", ".join(dict.fromkeys(one.name for one in KNOWN))
            raise InputError(f"loops cannot be compiled for {wanted}; expected one of {known}")
        return found, _NATIVE if own and found.name == own.name else f"-march={found.target}"
    if is_here and own:
        return own, _NATIVE
    told = f"{machine.id} {machine.name}".lower().replace("ivy-bridge", "ivy bridge")
    found = next((one for one in KNOWN if any(word in told for word in one.words)), None)
    if is_here or found is None:
        raise InputError(
            f"the micro-architecture of {machine.name} is not known, for neither its name nor "
            f"/proc/cpuinfo tells it; give OSACA's name of it (--architecture ICX), {_OTHERWISE}"
        )
    return found, f"-march={found.target}"


def find_loop(
    assembly: str, strides: Sequence[int], flops: float, name: str
) -> tuple[AssemblyLoop, int]:
    """Find the loop that executes most iterations a pass, and how many."""
    loops = list_inner_loops(assembly, RUN)
    counted = [(one, one.count_iterations(strides)) for one in loops]
    found = [(one, count) for one, count in counted if count]
    if not found:
        moves = "; ".join(
            ", ".join(map(str, sorted(one.advances))) or "none" for one in loops
        )  # fmt: skip
        what = f"its inner loops move addresses by {moves} bytes" if loops else "it has no loop"
        raise InputError(
            f"{name}: the innermost loop, which moves addresses by "
            f"{', '.join(map(str, sorted(set(strides))))} bytes, is not found in the compiled "
            f"code: {what} (the compiler may have interchanged or unrolled loops, or called "
            f"memcpy); give its assembly (--assembly), other flags (--flags), {_OTHERWISE}"
        )
    loop, iterations = max(found, key=lambda pair: pair[1])
    # Twice an iteration's `flops` and more are of iterations of an outer loop, joined.
    joined = round(loop.flops / (flops * iterations)) if flops else 1
    return loop, iterations * max(1, joined)


def _total(counts: OperationCounts) -> float:
    return sum(counts.operations.values()) + sum(counts.memory.values())
