"""Answers of the CPU models as JSON."""

from dataclasses import asdict

from kernelcast.analytic.cpu.units import Unit
from kernelcast.launches.modelling.cpu_loops import LoopPrediction
from kernelcast.records.analytic_estimate import AnalyticEstimate


def prediction_to_json(found: LoopPrediction, unit: Unit) -> dict[str, object]:
    """Give one size; cycles are core cycles per cache line of work."""
    terms, roofline = found.in_core, found.roofline
    return {
        "constants": dict(found.constants),
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
    return {
        "kernel": name,
        "machine": found.machine,
        "model": found.model,
        "seconds": found.seconds,
        "limiter": found.limiter,
        "limiters": dict(found.limiters),
        "volumes": dict(found.volumes),
        "quantities": dict(found.quantities),
        "notes": list(found.notes),
    }
