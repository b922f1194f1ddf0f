import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import compute_requests, summarise
from kernelcast.features.vector import (
    CounterSource,
    SampledSource,
    StaticSource,
    combine,
    make_schema,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.device import CompilerFacts, SaturationPoint, Trait, TraitSource
from kernelcast.records.ndrange import NDRange
from kernelcast.records.software_counters import WarpCounters
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
WARP = NDRange(global_size=(32,), local_size=(32,))


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
    assert "static.work_items_count" in vector.values
    assert "static.work_groups_count" in vector.absent


def test_compiler_features_are_those_that_somebody_told() -> None:
    """Keeps zero apart from unknown."""
    facts = CompilerFacts(
        registers_per_work_item=Trait(value=40, source=TraitSource.REPORTED),
        private_bytes_per_work_item=Trait(value=0, source=TraitSource.REPORTED),
    )
    p_sat = Trait(value=8, source=TraitSource.MEASURED)
    saturation = SaturationPoint(p_sat=p_sat, concurrency=16)
    assert combine(saturation, facts).as_dict() == {
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


def test_counters_give_operations_per_lane_and_requests() -> None:
    """Counts a fused float4 operation as four, and as eight flops; weighs sectors by requests."""
    facts = facts_of(
        "kernel void k(global const float *a, global float4 *b) { int g = get_global_id(0);"
        " float s = 0; for (int k = 0; k < 3; k++) s += a[8 * g + k];"
        " b[g] = fma((float4)(s), (float4)(2.0f), b[g]); }"
    )
    warp = WarpCounters(width=32, issued=100, executed=1600, branches=5, divergent_branches=2)
    patterns = compute_requests(facts.accesses, WARP, {})
    counters = summarise(facts, count_statically(facts, WARP, {}, [0]), patterns=patterns)
    counters = replace(counters, warps=(warp,))
    found = combine(CounterSource(counters=counters, facts=facts)).as_dict()
    expected = {
        "fp32_multiply_add_per_work_item": 4, "flops_per_work_item": 3 + 8,
        "global_load_bytes_per_work_item": 12 + 16, "flops_per_byte": 11 / (12 + 16 + 16),
        "lanes_per_operation": (16 + 4) / (16 + 1),  # sums, indices and comparisons too
        "issued_instructions_per_work_item": 100, "executed_instructions_per_work_item": 50,
        "serialised_instructions_per_warp": 50, "lane_efficiency_ratio": 0.5,
        "global_load_requests_per_warp": 3 + 1, "coalesced_global_load_requests_per_warp": 1,
        "global_sectors_per_warp": 96 + 16 + 16, "global_sectors_per_request": 128 / 5,
        "global_sector_excess_ratio": 128 / (12 + 16 + 16), "known_requests_ratio": 1,
    }  # fmt: skip
    assert {name: found[f"counters.{name}"] for name in expected} == pytest.approx(expected)


def test_no_unknown_address_is_a_coalesced_one() -> None:
    """Says of which share of accesses the features speak."""
    facts = facts_of("kernel void k(global float *a, float x) { a[(int)(x * 0.5f)] = x; }")
    counters = summarise(facts, count_statically(facts, WARP, {}, [0]))
    vector = combine(CounterSource(counters=counters, facts=facts))
    assert "counters.global_sectors_per_warp" in vector.absent
    assert vector.as_dict()["counters.known_requests_ratio"] == 0
    assert vector.as_dict()["counters.bank_conflicts_per_warp"] == 0
