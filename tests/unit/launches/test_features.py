from dataclasses import replace
from typing import cast
from unittest.mock import Mock

import pytest

from kernelcast.features.vector import CounterSource, combine
from kernelcast.launches import devices as devices_module
from kernelcast.launches.counting import count_exactly
from kernelcast.launches.features import (
    DeviceFindings,
    FeatureSettings,
    KernelFeatures,
    add_counts,
    compose_vector,
    read_on_devices,
    read_source_features,
)
from kernelcast.records.device import CompilerFacts, Trait, TraitSource
from kernelcast.records.errors import InputError, KernelRunError
from kernelcast.records.feature_vector import FeatureGroup
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import SoftwareCounters
from kernelcast.sampling.launch import OpenCLLaunch
from support.builders import make_description, make_sample_run
from support.problems import number_of, read_example

EVERY = FeatureSettings(groups=frozenset(FeatureGroup))


@pytest.fixture
def problem() -> Problem:
    return read_example("triad")


@pytest.fixture
def features(problem: Problem) -> KernelFeatures:
    return read_source_features(problem, EVERY)


def make_findings(features: KernelFeatures) -> DeviceFindings:
    measured = replace(features.counters, work_items=7, is_measured=True)
    registers = Trait(value=24, source=TraitSource.REPORTED)
    return DeviceFindings(
        ndrange=features.ndrange,
        compute_units=2,
        compiler=CompilerFacts(registers_per_work_item=registers),
        counters=measured,
        run=make_sample_run([(0, 2, 0.1), (0, 3, 0.2)], work_groups=100),
        linear_s=5.0,
    )


def test_an_open_local_size_is_assumed_aloud(problem: Problem) -> None:
    """Counts with a local size of its own, says so, and leaves the launch's features absent."""
    ndrange = NDRange(global_size=(48, 3))
    found = read_source_features(replace(problem, ndrange=ndrange), EVERY)
    assert found.ndrange.local_size == (16, 1)
    assert "(16, 1) is assumed" in found.notes[0]
    assert "static.work_groups_count" in found.vector.absent


def test_measured_counters_replace_derived_ones(features: KernelFeatures) -> None:
    """Takes what a device counted, and keeps what it could not count."""
    findings = make_findings(features)
    found = compose_vector(features, findings).as_dict()
    assert found["counters.measured_flag"] == 1
    assert found["counters.counted_work_items_count"] == 7
    findings.counters = None
    assert compose_vector(features, findings).as_dict()["counters.measured_flag"] == 0


def test_work_groups_that_wait_for_others_are_not_counted(features: KernelFeatures) -> None:
    """Runs none of them, which might never end, and says why."""
    source = "kernel void k(global volatile int *f) { while (atomic_or(f, 0) == 0); }"
    problem = replace(features.problem, kernel=Kernel(name="k", source=source))
    found = DeviceFindings(ndrange=problem.ndrange, compute_units=2)
    unused = cast("OpenCLLaunch", None)
    assert add_counts(found, problem, unused) is None
    assert "may wait for ever" in found.notes[0]


def test_a_failed_device_keeps_its_error(
    features: KernelFeatures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goes on with the next device."""
    ask = Mock(side_effect=[KernelRunError("it died"), make_findings(features)])
    monkeypatch.setattr(devices_module, "run_isolated", ask)
    stages: list[str] = []
    devices = [make_description(), make_description()]
    failed, answered = read_on_devices(features, devices, report=stages.append)
    assert str(failed[1]) == "it died"
    assert isinstance(answered[1], DeviceFindings)
    assert answered[1].vector is not None
    assert ask.call_args.args[0].entry.endswith(":read_device_features")
    ask.call_args.kwargs["report"]("stage")
    assert stages[-1] == "fake-device-0000: stage"
    whole = replace(features, devices=(failed, answered))
    assert whole.best_counters.work_items == 7
    # No process is started that could tell nothing.
    static = read_source_features(
        features.problem, FeatureSettings(groups=frozenset({FeatureGroup.STATIC}))
    )
    assert list(read_on_devices(static, devices)) == []


@pytest.mark.parametrize("numbers", [{"timeout_s": 0.0}, {"timeout_s": 1e9}, {"seed": -1}])
def test_settings_out_of_range_are_refused(numbers: dict[str, int]) -> None:
    """Says what is allowed before anything runs."""
    with pytest.raises(InputError, match="give a"):
        FeatureSettings(**numbers)


HEAD = "kernel void k(global float *a, global const float *b, int n) "


def count(problem: Problem) -> tuple[SoftwareCounters | None, KernelFeatures]:
    features = read_source_features(problem)
    return count_exactly(features.facts, problem, features.counters), features


@pytest.mark.parametrize("name", ["matmul_tiled", "nbody", "histogram", "spmv_csr", "mandelbrot"])
def test_known_sources_need_no_run(name: str) -> None:
    """Where nothing depends on data, counts are the source's, and count as measured; addresses,
    conditions and loops that data decide are left to a run, as is a local size not yet chosen."""
    problem = read_example(name)
    exact, features = count(problem)
    assert (exact is not None) == (name in {"matmul_tiled", "nbody"})
    if exact is not None:
        assert exact.executed == features.counters.executed
        assert len(exact.patterns) == len(features.facts.accesses)
        vector = combine(CounterSource(counters=exact, facts=features.facts)).as_dict()
        assert vector["counters.measured_flag"] == vector["counters.exact_flag"] == 1
        assert count(replace(problem, ndrange=replace(problem.ndrange, local_size=None)))[0] is None


@pytest.mark.parametrize(
    ("body", "is_known"),
    [
        ("for (int j = 0; j < 9; j++) if (i < n) a[i] += b[j];", True),
        # In a record, the first request of a border's work-item is its second iteration.
        ("for (int j = 0; j < 9; j++) if (i + j > 4) a[i] = b[j];", False),
    ],
)
def test_what_work_items_skip_must_not_depend_on_iterations(
    body: str, is_known: bool, problem: Problem
) -> None:
    """A guard is fine unless it lets work-items skip different iterations."""
    kernel = Kernel(name="k", source=f"{HEAD} {{ int i = get_global_id(0); {body} }}")
    asked = replace(problem, kernel=kernel, arguments=(*problem.arguments[:2], number_of(1000)))
    assert (count(asked)[0] is not None) == is_known
