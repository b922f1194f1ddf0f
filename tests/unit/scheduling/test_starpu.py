"""Codelet files, where times come from, and the files that are written."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.cli import app
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.recordings import RecordedAnswer
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import BrokenDeviceError, InputError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.records.observation import ObservationFlag, summarise_runs
from kernelcast.records.problem import Problem, digest_arguments
from kernelcast.scheduling import starpu
from kernelcast.scheduling.starpu import (
    TaskSize,
    Worker,
    WorkerKind,
    extrapolate,
    fit_offset_power_law,
    fit_power_law,
    footprint_of_data,
    footprint_of_size_base,
    parse_worker,
    read_codelets,
    write_model,
)
from kernelcast.training_data.store import open_store
from support.builders import make_description, make_estimate
from support.observations import make_observation

PROBLEM = """
code: |
  __kernel void triad(__global float *a, int n) { a[get_global_id(0)] = n; }
kernel: triad
global_size: ["{N}"]
local_size: [64]
parameters: {N: 1024}
args:
  - {buffer: float32, count: "{N}", init: zeros}
  - {scalar: int32, value: "{N}"}
"""
CODELETS = """
codelets:
  kc_triad:
    data: [{vector: "{N}", element_bytes: 4}, {matrix: ["{N}", 2], element_bytes: 8}]
    flops: "2 * {N}"
    sizes: [{N: 1024}, {N: 4096}]
    workers:
      opencl0: {problem: triad.yaml}
      cpu:
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "triad.yaml").write_text(PROBLEM)
    (tmp_path / "codelets.yaml").write_text(CODELETS)
    return tmp_path


def make_row(size: int, seconds: float, device_id: str = "pocl-1") -> dict[str, Any]:
    """Make what `kernelcast estimate --json` says of a size."""
    return {
        "device_id": device_id, "device": "a device", "problem": "triad", "kernel": "triad",
        "global_size": [size], "local_size": [64], "seconds": seconds, "low": seconds * 0.9,
        "high": seconds * 1.1, "coverage": 0.9, "tier": "linear",
        "to_device_s": 5.0, "total_s": 5.0 + seconds,  # StarPU would add its own a second time
    }  # fmt: skip


def make_times(size: int) -> dict[str, Any]:
    """Make what a program says of its own function: 1 us per pass."""
    samples = [{"first": n * 100, "units": 10 * (1 + n % 2), "seconds": 1e-5 * (1 + n % 2)}
               for n in range(6)]  # fmt: skip
    return {"codelet": "kc_triad", "worker": "cpu", "parameters": {"N": size}, "units": size,
            "samples": samples}  # fmt: skip


def run(
    folder: Path, *words: str | Path, rows: list[dict[str, Any]] | None = None, status: int = 0
) -> str:
    """Run `kernelcast starpu export` with times, and rows of estimates if there are any; give the
    JSON, or what is said where it ends with another status."""
    given = {"--times": [make_times(1024), make_times(4096)], "--estimates": rows}
    for option, content in given.items():
        if content is not None and option not in words:
            path = folder / f"{option[2:]}.json"
            path.write_text(json.dumps(content))
            words = (*words, option, path)
    result = CliRunner().invoke(
        app,
        ["starpu", "export", str(folder / "codelets.yaml"), "--into", str(folder / "sampling"),
         "--host", "node1", "--json", *map(str, words)],
    )  # fmt: skip
    assert result.exit_code == status, result.stderr
    return result.stderr if status else result.stdout


def read_rows(path: Path, worker: str) -> list[list[float]]:
    """Read size, flops, mean and deviation of each entry of a worker, which counts as ten."""
    part = path.read_text().split(f"# Model for {worker}_impl0")[1].split("# Model for")[0]
    rows = [line.split() for line in part.splitlines() if len(line.split()) == 8 and line[0] != "#"]
    assert {one[7] for one in rows} == {"10"}
    # StarPU computes the mean anew from the sum when it adds a measurement.
    assert [float(one[5]) / 10 for one in rows] == pytest.approx([float(one[3]) for one in rows])
    return [[float(one) for one in row[1:5]] for row in rows]


def test_estimates_and_times_become_entries(folder: Path) -> None:
    """StarPU's file holds each size of each worker, under the footprint of its data; with a time
    missing there is none."""
    told = run(folder, rows=[make_row(1024, 1e-3)], status=2)
    assert "kc_triad on opencl0_impl0 at N=4096: no time is known" in told
    assert not (folder / "sampling").exists()
    told = json.loads(run(folder, rows=[make_row(n, n * 1e-6) for n in (1024, 4096)]))
    path = folder / "sampling/codelets/45/kc_triad.node1"
    for worker in ("opencl0", "cpu0"):
        sizes, flops, means_us, deviations = zip(*read_rows(path, worker), strict=True)
        assert sizes == (4 * 1024 + 16 * 1024, 5 * 4 * 4096)
        assert means_us == pytest.approx([1024, 4096], rel=1e-5)
        assert flops == (2048, 8192)
        assert min(deviations) > 0
    assert [one["origin"] for one in told] == ["linear", "linear", "sampled", "sampled"]
    assert {one["file"] for one in told} == {str(path)}
    asked = read_codelets(folder / "codelets.yaml")["kc_triad"]
    assert [one["footprint"] for one in told] == [f"{one.footprint:08x}" for one in asked]


def test_what_leaves_an_export_unclear_is_told(folder: Path) -> None:
    """Estimates of two devices unless --device chooses, launches that differ in their arguments
    alone, and a path longer than StarPU's buffer of 255 letters."""
    both = [make_row(n, s, d) for n in (1024, 4096) for d, s in (("a-1", 1e-3), ("b-1", 2e-3))]
    assert "a-1, b-1" in run(folder, rows=both, status=2)
    told = json.loads(run(folder, "--device", "opencl0=b", rows=both))
    assert told[0]["seconds"] == 2e-3
    run(folder, "--device", "opencl3=b", rows=both, status=2)
    run(folder, "--device", "b", rows=both, status=2)
    long = folder / ("x" * 240)
    assert "shorten the folder" in run(
        folder, "--into", long, "--device", "opencl0=b", rows=both, status=2
    )
    (folder / "triad.yaml").write_text(PROBLEM.replace('global_size: ["{N}"]', "global_size: [64]"))
    assert "same index space" in run(folder, rows=[make_row(64, 1e-3)], status=2)


def test_observations_come_before_estimates(folder: Path) -> None:
    """The very launch counts, not another size of the kernel."""
    problem = read_problem(folder / "triad.yaml", parameters={"N": 1024})
    made = make_observation(0)
    launch = replace(
        made.launch,
        kernel=replace(made.launch.kernel, name="triad", digest=problem.kernel.digest),
        ndrange=problem.ndrange,
        arguments_digest=digest_arguments(problem.arguments, seed=0),
    )
    store_path = folder / "rows.sqlite"
    with open_store(store_path) as store:
        store.add(replace(made, launch=launch))
        # A first launch, and one that contradicted what was known when it came, decide nothing.
        for number, flag in enumerate((ObservationFlag.FIRST_LAUNCH, ObservationFlag.DOUBTED)):
            wrong = replace(made, launch=launch, measurement=f"{number}", flags=frozenset({flag}))
            store.add(replace(wrong, runs=summarise_runs([100.0 + number])))
    rows = [make_row(1024, 9.0), make_row(4096, 9.0)]
    told = json.loads(run(folder, "--observed", "--store", store_path, rows=rows))
    assert [one["origin"] for one in told] == ["store", "linear", "sampled", "sampled"]
    assert told[0]["seconds"] == made.seconds


@pytest.mark.parametrize(
    ("line", "footprint", "size_bytes"),
    [
        ('size_base: "3 * {N}"', footprint_of_size_base(3072), 3072),
        ('footprint: "{N} + 1"', 1025, 20 * 1024),
    ],
)
def test_a_size_base_or_footprint_of_the_programs_own(
    folder: Path, line: str, footprint: int, size_bytes: int
) -> None:
    """Replaces the footprint of the data, as in the program."""
    (folder / "codelets.yaml").write_text(CODELETS.replace("flops:", f"{line}\n    flops:"))
    size = read_codelets(folder / "codelets.yaml")["kc_triad"][0]
    assert (size.footprint, size.size_bytes) == (footprint, size_bytes)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("kc_triad:", "kc.triad:", "letters, digits"),
        ("cpu:", "cpu5:", "one model for all CPU cores"),
        ("{N: 4096}", "{N: 1024}", "have one footprint"),
        ("2 * {N}", "0 - {N}", "at least 0"),
        ("vector:", "vektor:", "unknown key"),
        ('["{N}", 2]', '"{N}"', "a matrix of 1 sizes: expected 2"),
        ('["{N}", 2]', '["{N}", 4294967296]', "32 bits"),
        ("element_bytes: 8}", "}", "element_bytes"),
        ("triad.yaml", "other.yaml", "there is no file"),
        ("sizes: [{N: 1024}, {N: 4096}]", "sizes: []", "at least one size"),
        ('data: [{vector: "{N}", element_bytes: 4}, {matrix: ["{N}", 2], element_bytes: 8}]', "",
         "size_base"),
        ("{N: 4096}", "{M: 4096}", "no parameter"),
    ],
)  # fmt: skip
def test_codelet_files_that_cannot_be_used(
    folder: Path, old: str, new: str, complaint: str
) -> None:
    """One line says what is wrong; exit status 2."""
    assert old in CODELETS
    (folder / "codelets.yaml").write_text(CODELETS.replace(old, new))
    said = run(folder, rows=[make_row(1024, 1e-3), make_row(4096, 1e-3)], status=2)
    assert complaint in said
    assert "Traceback" not in said


@pytest.mark.parametrize("content", ["{", "{}", "[1]", '[{"kernel": 1}]'])
def test_files_of_another_kind_are_refused(folder: Path, content: str) -> None:
    """Both options say what they expect."""
    (folder / "x.json").write_text(content)
    for option in ("--estimates", "--times"):
        assert "x.json" in run(folder, option, folder / "x.json", status=2)


def test_loops_are_extrapolated_with_their_start() -> None:
    """Every launch's constant cost is paid once, not once per pass."""
    stretches = [(100 * n, 10 * (1 + n % 2), 0.01 + 0.001 * 10 * (1 + n % 2)) for n in range(8)]
    assert extrapolate(stretches, units=1000).seconds == pytest.approx(1.01, rel=0.2)
    with pytest.raises(InputError, match="the loop has 50"):
        extrapolate([(0, 100, 1.0)], units=50)
    with pytest.raises(InputError, match="samples"):
        extrapolate([], units=50)


def test_kernels_are_estimated_now(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size once, on the device named; a device that fails ends the export."""
    device = make_description()
    asked: list[tuple[int, ...]] = []

    def answer(
        problem: Problem, devices: list[DeviceDescription], **_: object
    ) -> Iterator[RecordedAnswer]:
        assert devices == [device]
        asked.append(problem.ndrange.global_size)
        make = partial(DeviceAnswer, device_id=device.id, device="d", problem="t", kernel="triad")
        seconds = 1e-6 * problem.ndrange.global_size[0]
        found = make(error=BrokenDeviceError("the driver crashed")) if len(asked) > 3 else make(
            estimate=make_estimate(seconds, device_id=device.id, ndrange=problem.ndrange)
        )  # fmt: skip
        yield found, None

    monkeypatch.setattr(starpu, "choose_devices", lambda _: [device])
    monkeypatch.setattr(starpu, "estimate_on_devices", answer)
    told = json.loads(run(folder, "--device", f"opencl0={device.id}"))
    assert asked == [(1024,), (4096,)]
    assert (told[0]["seconds"], told[0]["device_id"]) == (1024e-6, device.id)
    assert "the driver crashed" in run(folder, status=1)
    monkeypatch.setattr(starpu, "choose_devices", lambda _: [device, device])
    assert "several devices" in run(folder, status=2)


CPU = Worker(kind=WorkerKind.CPU)
OPENCL = Worker(kind=WorkerKind.OPENCL, device=1)


def make_entries(*seconds: float, worker: Worker = CPU) -> list[TaskSize]:
    return [
        TaskSize(symbol="triad", worker=worker, parameters={}, footprint=n,
                 size_bytes=1000 * 2**n, flops=0.0,
                 seconds=one, deviation_s=one / 10, origin="given")
        for n, one in enumerate(seconds)
    ]  # fmt: skip


def test_footprints_are_starpus() -> None:
    """CRC-32C, highest bit first, over sizes, then the number of the interface."""
    assert footprint_of_data("vector", (1024,), 4) == 0xDD20D08B
    assert footprint_of_data("matrix", (64, 32), 8) == 0x2154786E
    assert footprint_of_data("block", (4, 5, 6), 8) == 0xE82DDE36
    assert footprint_of_data("variable", (), 12) == 0x4A60DF81
    assert footprint_of_size_base(4096) == 0xCABFB472


def test_what_is_not_known_is_written_empty() -> None:
    """StarPU numbers implementations by their order, and takes nan for no regression."""
    second = Worker(kind=WorkerKind.CPU, implementation=1)
    text = write_model(make_entries(1.0, worker=second))
    first, second_part = text.split("# Model for cpu0_impl")[1:]
    assert "# number of entries\n0\n" in first
    assert "# number of entries\n1\n" in second_part
    assert write_model(make_entries(1.0, worker=OPENCL)).count("nan") == 5
    assert fit_power_law(make_entries(1.0)) is None


@given(st.floats(1e-3, 1e3), st.floats(0.2, 3))
def test_power_laws_are_found(alpha: float, beta: float) -> None:
    """Times that follow one give it back."""
    law = fit_power_law(make_entries(*(alpha * (1000 * 2**n) ** beta / 1e6 for n in range(4))))
    assert law is not None
    assert law[0] == pytest.approx(alpha, rel=1e-6)
    assert law[1] == pytest.approx(beta, rel=1e-6)


@given(st.floats(0.5, 2), st.floats(0, 500))
def test_an_offset_is_found(b: float, c: float) -> None:
    """The curve passes through times that follow one."""
    a = 1000 / 1000**b
    times = [a * (1000 * 2**n) ** b + c for n in range(6)]
    found = fit_offset_power_law(make_entries(*(one / 1e6 for one in times)))
    assert found is not None
    for n, time in enumerate(times):
        assert found[0] * (1000 * 2**n) ** found[1] + found[2] == pytest.approx(time, rel=2e-3)


@given(st.sampled_from([WorkerKind.CUDA, WorkerKind.OPENCL]), st.integers(0, 7), st.integers(0, 3))
def test_workers_survive_their_names(kind: WorkerKind, device: int, implementation: int) -> None:
    """A printed worker is read as itself; what StarPU lacks is refused."""
    worker = Worker(kind=kind, device=device, implementation=implementation)
    assert parse_worker(str(worker)) == worker
    for text in ("gpu", "cpu1", "opencl0_impl7", "opencl-1"):
        with pytest.raises(InputError, match="worker"):
            parse_worker(text)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_times_that_starpu_could_not_use_are_refused(seconds: float) -> None:
    """Says what was expected."""
    with pytest.raises(InputError, match="above 0"):
        make_entries(seconds)
