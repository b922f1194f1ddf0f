from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.features.counter_features import CounterSource
from kernelcast.features.vector import combine
from kernelcast.launches.counting import count_exactly
from kernelcast.launches.features import DeviceFindings, KernelFeatures, read_source_features
from kernelcast.launches.problem_file import read_problem
from kernelcast.predictor.answering import gathering
from kernelcast.records.arguments import ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import SoftwareCounters

ROOT = Path(__file__).resolve().parents[3]
HEAD = "kernel void k(global float *a, global const float *b, int n) "


def count(problem: Problem) -> tuple[SoftwareCounters | None, KernelFeatures]:
    """Give exact counts, and what the source tells."""
    features = read_source_features(problem)
    return count_exactly(features.facts, problem, features.counters), features


def with_source(body: str, problem: Problem) -> Problem:
    """Give a problem of triad's shape with another kernel."""
    return replace(problem, kernel=Kernel(name="k", source=HEAD + body))


@pytest.fixture
def triad() -> Problem:
    """Give a problem of one line."""
    problem = read_problem(ROOT / "examples/triad/triad.yaml")
    number = ScalarArgument(element=ElementType("int32"), values=(1000,))
    return replace(problem, arguments=(*problem.arguments[:2], number))


@pytest.mark.parametrize("name", ["matmul_tiled", "nbody", "transpose"])
def test_known_sources_need_no_run(name: str) -> None:
    """Where nothing depends on data, counts are the source's, and count as measured."""
    exact, features = count(read_problem(ROOT / f"examples/{name}/{name}.yaml"))
    assert exact is not None
    assert exact.executed == features.counters.executed
    assert len(exact.patterns) == len(features.facts.accesses)
    vector = combine(CounterSource(counters=exact, facts=features.facts)).as_dict()
    assert vector["counters.measured_flag"] == vector["counters.exact_flag"] == 1


@pytest.mark.parametrize("name", ["histogram", "spmv_csr", "mandelbrot"])
def test_data_must_be_seen(name: str) -> None:
    """Addresses, conditions and loops that depend on data are left to a run."""
    exact, _ = count(read_problem(ROOT / f"examples/{name}/{name}.yaml"))
    assert exact is None


@pytest.mark.parametrize(
    ("body", "is_known"),
    [
        ("{ int i = get_global_id(0); if (i < n) a[i] = b[i]; }", True),
        ("{ int i = get_global_id(0); for (int j = 0; j < 9; j++) a[i] += b[j]; }", True),
        # In a record, the first request of a border's work-item is its second iteration.
        ("{ int i = get_global_id(0); for (int j = 0; j < 9; j++) if (i + j > 4) a[i] = b[j]; }",
         False),
        ("{ int i = get_global_id(0); if (b[i] > 0) a[i] = 1; }", False),
    ],
)  # fmt: skip
def test_what_work_items_skip_must_not_depend_on_iterations(
    body: str, is_known: bool, triad: Problem
) -> None:
    """A guard is fine unless it lets work-items skip different iterations."""
    exact, _ = count(with_source(body, triad))
    assert (exact is not None) == is_known


def test_a_local_size_that_is_not_chosen_is_left_to_a_run() -> None:
    """Counts of an assumed work-group are not those of the one that the device chooses."""
    problem = read_problem(ROOT / "examples/transpose/transpose.yaml")
    open_size = NDRange(global_size=problem.ndrange.global_size)
    exact, _ = count(replace(problem, ndrange=open_size))
    assert exact is None


def test_a_model_that_wants_records_gets_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the analytic model of a calibrated device has no answer, addresses are recorded."""
    problem = read_problem(ROOT / "examples/transpose/transpose.yaml")
    features = read_source_features(problem)
    found = DeviceFindings(ndrange=problem.ndrange, compute_units=2, notes=["earlier"])

    def refuse(found: DeviceFindings, *_: object, **__: object) -> None:
        found.notes.append("no analytic features")

    monkeypatch.setattr(gathering, "add_analytic_findings", refuse)
    monkeypatch.setattr(gathering, "find_own_machine", lambda _: None)
    assert gathering._derive(features, problem, "a device", found)
    assert found.counters is not None
    assert found.notes == ["earlier", "no analytic features"]
    found.notes = ["earlier"]
    monkeypatch.setattr(gathering, "find_own_machine", lambda _: object())
    assert not gathering._derive(features, problem, "a device", found)
    assert found.counters is None
    assert found.notes == ["earlier"]
