import re
from dataclasses import replace
from pathlib import Path

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import read_facts
from kernelcast.features.vector import (
    CompilerSource,
    CounterSource,
    SampledSource,
    StaticSource,
    combine,
    make_schema,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.device import CompilerFacts, SaturationPoint, Trait, TraitSource
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)
from kernelcast.records.software_counters import RequestPattern, SoftwareCounters, WarpCounters
from support.builders import make_sample_run
from support.kernel_facts import facts_of

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = (ROOT / "docs/reference/features.md").read_text(encoding="utf-8")
TABLE_1 = {
    "active work-groups", "registers per work-item", "execution time", "branches", "work-items",
    "divergent branches", "L1/L2 miss rate", "total L1 accesses", "issued instructions",
    "executed instructions", "bank conflicts", "shared loads/stores", "global loads",
    "global loads coalesced", "warp serializes", "IPS",
}  # fmt: skip
SOURCE = "kernel void k(global float *a, int n) { if (n > 0) a[get_global_id(0)] = n; }"
FACTS: KernelFacts = facts_of(SOURCE)


def make_counters(**patterns: float) -> SoftwareCounters:
    """Make counters of a work-item with one fused float4 operation and 20 accesses; loads and
    stores that need 4 sectors a request may be known to take others."""
    fused = Operation(kind=OperationKind.FUSED, number=NumberClass.FLOAT, bits=32, lanes=4)
    load = MemoryOperation(space=MemorySpace.GLOBAL, is_store=False, bytes=4)
    store = MemoryOperation(space=MemorySpace.GLOBAL, is_store=True, bytes=4)
    warp = WarpCounters(width=32, issued=100, executed=1600, branches=5, divergent_branches=2)
    return SoftwareCounters(
        work_groups=1,
        work_items=32,
        executed=OperationCounts(operations={fused: 10}, memory={load: 10, store: 10}),
        block_counts=(1.0,) * len(FACTS.blocks),
        warps=(warp,),
        loops=(),
        patterns=tuple(
            RequestPattern(
                site=0,
                line=1,
                buffer="a",
                space=MemorySpace.GLOBAL,
                is_store=kind == "store",
                requests=10,
                sectors_per_request=sectors,
                ideal_sectors_per_request=4,
                bank_conflicts_per_request=0,
                is_measured=False,
            )
            for kind, sectors in patterns.items()
        ),
        is_exact=True,
    )


def list_described() -> list[str]:
    """List the features that the reference describes, one for each word that a row lists."""
    found = []
    for name, meaning in re.findall(r"^\| `(\w+\.\w+)` \| (.+) \|$", REFERENCE, re.MULTILINE):
        assert not meaning.endswith(".")
        kind, words = (re.findall(r"; (TYPE|SPACE): (.+)", meaning) or [("", name)])[0]
        found += [name.replace(kind, word) if kind else word for word in words.split(", ")]
    return found


def test_the_reference_describes_every_feature() -> None:
    """Has a row for each, names for all of the paper, and the schema, which changes with intent."""
    schema = make_schema()
    assert sorted(list_described()) == sorted(schema.names)
    assert f"`{schema.id}`" in REFERENCE, (
        "data of another schema no longer fits a model; if a feature kept its name and changed its "
        "meaning, raise SCHEMA_VERSION; then write the new schema and rows into the reference"
    )
    for paper in TABLE_1:
        [names] = re.findall(rf"^\| {re.escape(paper)} \| (.+) \|$", REFERENCE, re.MULTILINE)
        assert set(re.findall(r"`(.+?)`", names)) <= {*schema.names}


def test_static_features_come_from_source_and_launch() -> None:
    """Gives sizes of the launch and shapes of the source; makes no work-groups up."""
    problem = read_problem(ROOT / "examples/matmul_tiled/matmul_tiled.yaml")
    facts = read_facts(problem.kernel)
    found = combine(StaticSource(facts=facts, problem=problem)).as_dict()
    assert found["static.work_items_count"] == problem.ndrange.work_item_count
    assert found["static.local_bytes_per_work_group"] == 16 * 16 * 4 * 5
    assert found["static.loop_depth_count"] == found["static.loops_count"] == 2
    assert found["static.vector_lanes_count"] == 4
    assert found["static.quasi_affine_access_ratio"] == found["static.coverage_ratio"] == 1
    assert {name.partition(".")[0] for name in found} == {"static"}
    whole = replace(problem, ndrange=NDRange(global_size=problem.ndrange.global_size))
    vector = combine(StaticSource(facts=facts, problem=whole))
    assert "static.work_items_count" in vector.names
    assert "static.work_groups_count" in vector.absent


def test_compiler_features_are_those_that_somebody_told() -> None:
    """Keeps zero apart from unknown."""
    facts = CompilerFacts(
        registers_per_work_item=Trait(value=40, source=TraitSource.REPORTED),
        private_bytes_per_work_item=Trait(value=0, source=TraitSource.REPORTED),
    )
    p_sat = Trait(value=8, source=TraitSource.MEASURED)
    saturation = SaturationPoint(p_sat=p_sat, concurrency=16)
    assert combine(CompilerSource(facts=facts, saturation=saturation)).as_dict() == {
        "compiler.active_work_groups_per_compute_unit": 8,
        "compiler.registers_per_work_item": 40,
        "compiler.private_bytes_per_work_item": 0,
    }


def test_sampled_features_leave_pilots_out() -> None:
    """Speaks of the launches that the estimate was made of."""
    run = make_sample_run([(-1, 1, 9.0), (0, 2, 0.1), (0, 3, 0.2)], work_groups=100)
    source = SampledSource(run=run, linear_s=5.0, compute_units=2, issued_per_work_item=50.0)
    found = combine(source).as_dict()
    assert found["sampled.run_s"] == 0.2
    assert found["sampled.work_items_count"] == 5 * 8
    assert found["sampled.linear_s_per_work_group"] == 0.05
    assert found["sampled.issued_instructions_per_s"] == 50 * 800 / 5
    assert found["sampled.issued_instructions_per_s_per_compute_unit"] == 50 * 800 / 5 / 2


def test_counters_give_operations_per_lane_and_intensity() -> None:
    """Counts a fused float4 operation as four, and as eight flops."""
    found = combine(CounterSource(counters=make_counters(), facts=FACTS)).as_dict()
    assert found["counters.fp32_multiply_add_per_work_item"] == 40
    assert found["counters.flops_per_work_item"] == 80
    assert found["counters.lanes_per_operation"] == 4
    assert found["counters.global_load_bytes_per_work_item"] == 40
    assert found["counters.flops_per_byte"] == 1
    assert found["counters.issued_instructions_per_work_item"] == 100
    assert found["counters.executed_instructions_per_work_item"] == 50
    assert found["counters.serialised_instructions_per_warp"] == 50
    assert found["counters.lane_efficiency_ratio"] == 0.5


def test_requests_tell_coalesced_loads_from_others() -> None:
    """Weighs sectors by requests, and says which share of accesses it speaks of; takes no unknown
    address for a coalesced one."""
    found = combine(CounterSource(counters=make_counters(load=32, store=4), facts=FACTS)).as_dict()
    assert found["counters.global_load_requests_per_warp"] == 10
    assert found["counters.coalesced_global_load_requests_per_warp"] == 0
    assert found["counters.global_sectors_per_warp"] == 360
    assert found["counters.global_sectors_per_request"] == 18
    assert found["counters.global_sector_excess_ratio"] == 4.5
    assert found["counters.known_requests_ratio"] == 1
    vector = combine(CounterSource(counters=make_counters(), facts=FACTS))
    assert "counters.global_sectors_per_warp" in vector.absent
    assert vector.as_dict()["counters.known_requests_ratio"] == 0
    assert vector.as_dict()["counters.bank_conflicts_per_warp"] == 0
