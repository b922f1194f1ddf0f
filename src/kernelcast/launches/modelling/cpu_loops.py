"""Asks the CPU models for loop nests: traffic, in-core terms, ECM, Roofline."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import prod
from pathlib import Path
from typing import ClassVar

from kernelcast.analytic.cpu.ecm import (
    EcmPrediction,
    RooflinePrediction,
    ScalingPoint,
    Unit,
    Work,
    predict_ecm,
    predict_roofline,
    scale_cores,
)
from kernelcast.analytic.cpu.in_core import InCoreProvider, InCoreTerms, InstructionTable
from kernelcast.analytic.cpu.layer_conditions import (
    BlockingAdvice,
    LayerConditions,
    Transition,
    advise_blocking,
    list_transitions,
)
from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.analytic.cpu.simulated import SimulatedVolumes
from kernelcast.expressions.loop_nest import IterationSpace, LoopNest, list_outcomes, weigh
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.operations import NumberClass, OperationCounts, OperationKind

PREDICTORS = ("lc", "sim")
_FLOPS = {
    OperationKind.ADD: 1, OperationKind.MULTIPLY: 1, OperationKind.FUSED: 2,
    OperationKind.DIVIDE: 1, OperationKind.SPECIAL: 1, OperationKind.SPECIAL_NATIVE: 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTerms:
    """In-core terms that somebody knows already, for one cache line of work."""

    terms: InCoreTerms
    executes_all_sides: ClassVar[bool] = False

    def predict(self, _: LoopNest, __: float) -> InCoreTerms:
        """Give the terms."""
        return self.terms


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPrediction:
    """What the models say of a loop nest of one size."""

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
        """Give the ECM model's time or rate."""
        return self.work.tell(self.cycles, unit)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed or missing."""
        roofline = self.roofline.notes if self.roofline is not None else ()
        return tuple(dict.fromkeys((*self.ecm.notes, *roofline)))


@dataclass(slots=True, kw_only=True)
class LoopModel:
    """A loop nest on a machine."""

    nest: LoopNest
    machine: CpuMachine
    predictor: str = PREDICTORS[0]
    """``lc`` for layer conditions, ``sim`` for the cache simulator."""
    in_core: InCoreProvider | None = None
    _conditions: LayerConditions = field(init=False)
    _traffic: LayerConditions | SimulatedVolumes = field(init=False)
    _outcomes: "list[LoopModel]" = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        if self.predictor not in PREDICTORS:
            msg = f"cache predictor {self.predictor!r}; there are {', '.join(PREDICTORS)}"
            raise InputError(msg)
        self._conditions = LayerConditions(self.nest, self.machine)
        self._traffic = self._conditions
        if self.predictor == "sim":
            self._traffic = SimulatedVolumes(self.nest, self.machine)
        nearest = self.machine.caches[0].name
        knows_loads = self.machine.streams.reached(nearest, 1.0, 0.0, 1) is not None
        if self.in_core is None and knows_loads:
            self.in_core = InstructionTable(self.machine)

    def predict(self, constants: Mapping[str, int], cores: int = 1) -> LoopPrediction:
        """Predict one size."""
        trips = self._conditions.bind(constants).trips
        mean = self._weigh(constants, has_masks=False)
        volumes = self.traffic(constants, cores)
        terms, ecm = self.time(volumes, constants, has_masks=True)
        every = [ecm.cycles_of(cores)]
        is_known = self.in_core is not None and self.in_core.executes_all_sides
        for one in self._list_outcomes() if self.nest.has_branches else ():
            moved = volumes if one is self else one.traffic(constants, cores)
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

    def traffic(self, constants: Mapping[str, int], cores: int) -> CacheVolumes:
        """Give what one of so many busy cores moves."""
        return self._traffic.predict(constants, cores)

    def time(
        self, volumes: CacheVolumes, constants: Mapping[str, int], *, has_masks: bool
    ) -> tuple[InCoreTerms | None, EcmPrediction]:
        """Give the time in the core and of one core, with or without masks; see `weigh`."""
        terms = None
        if self.in_core is not None:
            executed = self._weigh(constants, has_masks=has_masks)
            terms = self.in_core.predict(replace(self.nest, executed=executed), volumes.iterations)
        return terms, predict_ecm(volumes, self.machine, terms)

    def _weigh(self, constants: Mapping[str, int], *, has_masks: bool) -> OperationCounts:
        nest = self.nest
        if not nest.branches:
            return nest.executed
        space = IterationSpace(nest.loops, nest.bind_constants(constants), nest.taken)
        return weigh(nest, space, has_masks=has_masks)

    def _list_outcomes(self) -> "list[LoopModel]":
        """Give the models of the nest as data may have it."""
        if not self._outcomes:
            self._outcomes = (
                [replace(self, nest=one) for one in list_outcomes(self.nest)]
                if self.nest.decisions
                else [self]
            )
        return self._outcomes

    def scale(self, constants: Mapping[str, int]) -> tuple[ScalingPoint, ...]:
        """Predict one core to all."""
        first = self.predict(constants)
        return scale_cores(
            lambda cores: self._traffic.predict(constants, cores), self.machine, first.in_core
        )

    def transitions(
        self, size: str, constants: Mapping[str, int], cores: int = 1
    ) -> tuple[Transition, ...]:
        """List where traffic changes with a size (paper, Listing 5)."""
        others = {name: value for name, value in constants.items() if name != size}
        return list_transitions(self.nest, self.machine, constants=others, size=size, cores=cores)

    def advise(self, constants: Mapping[str, int], cores: int = 1) -> tuple[BlockingAdvice, ...]:
        """Say which loops to block."""
        return advise_blocking(self.nest, self.machine, constants, cores)

    def conflicts(self, constants: Mapping[str, int]) -> tuple[str, ...]:
        """Say where rows compete for few sets of a cache, which only a simulation sees."""
        return () if self.predictor == "sim" else self._conditions.conflicts(constants)


def read_loop_file(path: Path, constants: Mapping[str, int]) -> tuple[str, LoopNest]:
    """Read a file with a C99 listing."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: the loop cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(msg) from error
    return source, read_loop_nest(source, constants, name=path.name)


def count_flops(executed: OperationCounts) -> float:
    """Count the floating-point operations of an iteration; a fused multiply-add is two."""
    return sum(
        executed.count(kind, number=NumberClass.FLOAT, per_lane=True) * flops
        for kind, flops in _FLOPS.items()
    )


def prediction_to_json(found: LoopPrediction, unit: Unit) -> dict[str, object]:
    """Give one size; cycles are core cycles per cache line of work."""
    terms, roofline = found.in_core, found.roofline
    return {
        "constants": found.constants,
        "cores": found.cores,
        "cache_predictor": found.volumes.predictor,
        "unit": unit.value,
        "value": found.value(unit),
        "least_cycles": found.least_cycles,
        "most_cycles": found.most_cycles,
        "iterations_per_line": found.volumes.iterations,
        "levels": [
            {"name": one.name, "hits": one.hits, "misses": one.misses, "evicts": one.evicts}
            for one in found.volumes.levels
        ],
        "in_core": None if terms is None else {
            "overlapping": terms.overlapping, "non_overlapping": terms.non_overlapping,
            "latency": terms.latency, "provider": terms.provider, "coverage": terms.coverage,
        },
        "ecm": {
            "notation": found.ecm.notation(),
            "transfers": [asdict(one) for one in found.ecm.transfers],
            "cumulative": list(found.ecm.cumulative()),
            "cycles": found.ecm.cycles,
            "saturation_cores": found.ecm.saturation_cores,
            "ideal_saturation_cores": found.ecm.ideal_saturation_cores,
        },
        "roofline": None if roofline is None else {
            "cycles": roofline.cycles,
            "bottleneck": roofline.bottleneck.level,
            "ceilings": [asdict(one) for one in roofline.ceilings],
        },
        "notes": list(found.notes),
    }  # fmt: skip


def estimate_to_json(name: str, found: AnalyticEstimate) -> dict[str, object]:
    """Give the estimate of an OpenCL launch; seconds, and bytes of the whole launch."""
    return {"kernel": name, **asdict(found)}
