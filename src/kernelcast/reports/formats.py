"""Features as plain dictionaries for JSON; the keys are the program's public interface."""

from kernelcast.expressions import Expr
from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.conditions import Condition
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.launches.features import DeviceFeatures, KernelFeatures
from kernelcast.records.feature_vector import FeatureVector
from kernelcast.records.operations import OperationCounts
from kernelcast.records.plain import CONVERTER, to_plain
from kernelcast.records.software_counters import LineFacts, SoftwareCounters

CONVERTER.register_unstructure_hook(Expr, str)
CONVERTER.register_unstructure_hook(Condition, str)


def features_to_json(features: KernelFeatures) -> dict[str, object]:
    """Turn features into what `kernelcast features --json` prints of them."""
    facts, problem = features.facts, features.problem
    counts = features.counters.block_counts
    local_size = problem.ndrange.local_size
    return {
        "problem": problem.name,
        "kernel": facts.kernel,
        "source": problem.kernel.source_name,
        "line": facts.line,
        "global_size": list(problem.ndrange.global_size),
        "local_size": None if local_size is None else list(local_size),
        "coverage": facts.coverage,
        "gaps": [to_plain(told_gap) for told_gap in facts.told_gaps],
        "notes": list(features.notes),
        "parameters": [to_plain(parameter) for parameter in facts.parameters],
        "local_arrays": [to_plain(local_array) for local_array in facts.local_arrays],
        "loops": [to_plain(loop) for loop in facts.loops],
        "accesses": [_describe_access(access) for access in facts.accesses],
        "counters": describe_counters(features.counters, facts),
        "lines": [_describe_line(line, counts) for line in features.facts.lines],
        "vector": _describe_vector(features.vector),
        "costs_seconds": features.costs_s,
        "devices": [_describe_device(device, facts) for device in features.devices],
    }


def describe_counters(counters: SoftwareCounters, facts: KernelFacts) -> dict[str, object]:
    """Describe software counters, measured or derived from the source."""
    return {
        "is_measured": counters.is_measured,
        "is_exact": counters.is_exact,
        "work_groups": counters.work_groups,
        "work_items": counters.work_items,
        **describe_counts(counters.executed),
        "blocks": [
            {"function": block.function, "kind": block.kind, "line": block.line,
             "executions": executions}
            for block, executions in zip(facts.blocks, counters.block_counts, strict=True)
        ],
        "loops": [to_plain(loop) for loop in counters.loops],
        "warps": [
            {**to_plain(warp), "lane_efficiency": warp.lane_efficiency} for warp in counters.warps
        ],
        "requests": [
            {**to_plain(pattern), "is_coalesced": pattern.is_coalesced}
            for pattern in counters.patterns
        ],
    }  # fmt: skip


def describe_counts(counts: OperationCounts) -> dict[str, object]:
    """List operations and memory operations with how often they are executed."""
    return {
        "operations": [
            {**to_plain(operation), "count": times}
            for operation, times in counts.operations.items()
        ],
        "memory": [
            {**to_plain(operation), "count": times} for operation, times in counts.memory.items()
        ],
    }


def _describe_access(access: MemoryAccess) -> dict[str, object]:
    return {
        **to_plain(access, omit=("block",)),
        "loops": [loop.name for loop in access.loops],
        "is_exact": access.is_exact,
    }


def _describe_line(facts: LineFacts, block_counts: tuple[float, ...]) -> dict[str, object]:
    return {
        "line": facts.line,
        "executions": facts.executions(block_counts),
        **describe_counts(facts.once),
    }


def _describe_device(features: DeviceFeatures, facts: KernelFacts) -> dict[str, object]:
    about: dict[str, object] = {"device": features.device, "device_id": features.device_id}
    findings = features.findings
    if findings is None or features.vector is None:
        return {**about, "error_message": str(features.error)}
    counters = None if findings.counters is None else describe_counters(findings.counters, facts)
    return {
        **about,
        "local_size": None
        if findings.ndrange.local_size is None
        else list(findings.ndrange.local_size),
        "compiler": None
        if findings.compiler is None
        else {
            name: to_plain(trait, omit=("low", "high", "origin"))
            for name, trait in findings.compiler.known.items()
        },
        "counters": counters,
        "vector": _describe_vector(features.vector),
        "notes": list(findings.notes),
        "costs_seconds": findings.costs_s,
    }


def _describe_vector(vector: FeatureVector) -> dict[str, object]:
    """Describe a vector; None stands for what is absent."""
    features = dict.fromkeys(vector.schema.names) | vector.as_dict()
    return {"schema": vector.schema.id, "features": features}
