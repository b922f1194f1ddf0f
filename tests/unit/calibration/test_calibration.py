import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelcast.calibration import calibration
from kernelcast.calibration.calibration import (
    CalibrationSettings,
    Effort,
    calibrate_device,
    merge_machines,
)
from kernelcast.launches.machines import machine_path, read_machine, write_machine
from kernelcast.records.device import DeviceKind, Progress, Trait, TraitSource
from kernelcast.records.errors import (
    BrokenDeviceError,
    EstimateTimeoutError,
    InputError,
    KernelcastError,
    KernelRunError,
)
from kernelcast.records.machine import CacheFacts, Curve, InstructionFacts, MachineDescription
from kernelcast.sampling.microbenchmarks.bench import BenchmarkResult
from kernelcast.workers import Task
from support.builders import make_description

DEVICE = make_description()


def measured(value: float, source: TraitSource = TraitSource.MEASURED) -> Trait[float]:
    return Trait(value=value, source=source)


RESULTS = {
    "one": BenchmarkResult(
        name="one",
        costs={"launch_s": measured(1 / 3)},
        caches=(CacheFacts(name="L1", latency_s=measured(1e-9)),),
    ),
    "two": BenchmarkResult(
        name="two", caches=(CacheFacts(name="L1", load_bytes_per_s=measured(2e9)),)
    ),
}


class FakeSuite:
    """Two tiny microbenchmarks that do what the test says, in place of the child process."""

    def __init__(self) -> None:
        self.outcomes: dict[str, BenchmarkResult | BaseException] = dict(RESULTS)
        self.asked: list[str] = []

    def __call__(
        self, task: Task[Any], arguments: tuple[str, str, Effort], *,
        report: Callable[[str], None], **_: object,
    ) -> BenchmarkResult:  # fmt: skip
        assert task.entry.endswith(":run_benchmark")
        self.asked.append(arguments[0])
        report("measuring")
        outcome = self.outcomes[arguments[0]]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


@pytest.fixture(autouse=True)
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSuite:
    fake = FakeSuite()
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))
    titles = {name: (f"title of {name}", None) for name in RESULTS}
    monkeypatch.setattr(calibration, "SUITE", titles)
    monkeypatch.setattr(calibration, "run_isolated", fake)
    return fake


NAMES = [*calibration.SUITE]


def test_benchmarks_have_stable_names() -> None:
    """`--only` and resuming go by the names."""
    kinds = ["fp32", "fp32_fma", "int32", "fp64", "fp64_fma", "native_special", "special"]
    assert [
        *(f"instructions-{kind}" for kind in kinds), "clock", "divergence", "atomics", "barrier",
        "dispatch", "launch", "caches", "latency", "gathers", "bandwidth", "transfers",
    ] == NAMES  # fmt: skip


def test_joins_what_the_benchmarks_found_and_writes_it() -> None:
    """Writes driver's and benchmarks' numbers as one description, rounded to six digits."""
    seen: list[Progress] = []
    done = calibrate_device(DEVICE, CalibrationSettings(), report=seen.append)
    assert done.path == machine_path(DEVICE.id)
    assert read_machine(done.path) == done.machine
    assert done.machine.compute_units == Trait(
        value=2, source=TraitSource.REPORTED, origin="the OpenCL driver"
    )
    assert done.machine.costs["launch_s"].value == 0.333333
    assert done.machine.caches == (
        CacheFacts(name="L1", latency_s=measured(1e-9), load_bytes_per_s=measured(2e9)),
    )
    assert done.machine.calibrated_on
    assert (list(done.durations_s), done.resumed, done.failed) == (["one", "two"], (), {})
    assert [(one.title, one.done, one.total, one.stage) for one in seen] == [
        (f"title of {name}", done, 2, stage)
        for done, name in enumerate(RESULTS) for stage in ("", "measuring")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [
        KernelRunError("it died"), EstimateTimeoutError("it hangs"), InputError("it cannot"),
        # No file may hold negative and misordered numbers.
        measured(-1.0),
        Trait(value=1.0, low=2.0, high=3.0, source=TraitSource.MEASURED),
    ],
)  # fmt: skip
def test_a_failure_loses_one_benchmark_only(
    fake: FakeSuite, bad: KernelcastError | Trait[float]
) -> None:
    """Goes on after a crash, a hang or a refusal, and says what is missing and why."""
    is_trait = isinstance(bad, Trait)
    fake.outcomes["one"] = BenchmarkResult(name="one", costs={"x_s": bad}) if is_trait else bad
    done = calibrate_device(DEVICE, CalibrationSettings())
    assert list(done.failed) == ["one"]
    assert is_trait or done.failed == {"one": str(bad)}
    assert done.machine.not_obtained == done.failed
    assert "x_s" not in done.machine.costs
    assert done.machine.caches == (CacheFacts(name="L1", load_bytes_per_s=measured(2e9)),)
    assert read_machine(done.path) == done.machine


def test_ctrl_c_keeps_what_is_done_and_the_next_call_goes_on(fake: FakeSuite) -> None:
    """Runs after an interrupt only what had not run, then starts anew at the call after that."""
    fake.outcomes["two"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        calibrate_device(DEVICE, CalibrationSettings())
    assert not machine_path(DEVICE.id).exists()
    fake.asked.clear()
    fake.outcomes["two"] = RESULTS["two"]
    done = calibrate_device(DEVICE, CalibrationSettings())
    assert (fake.asked, done.resumed) == (["two"], ("one",))
    assert "launch_s" in done.machine.costs
    calibrate_device(DEVICE, CalibrationSettings())
    assert fake.asked == ["two", "one", "two"]


@pytest.mark.parametrize("change", ["driver", "kernelcast", "effort", "fresh", "damage"])
def test_does_not_resume_what_does_not_fit(fake: FakeSuite, change: str, tmp_path: Path) -> None:
    """Measures again under another driver, version or effort, on demand, or if files are bad."""
    fake.outcomes["two"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        calibrate_device(DEVICE, CalibrationSettings())
    folder = tmp_path / "data" / "calibrations" / DEVICE.id / "normal"
    state = json.loads((folder / "state.json").read_text())
    if change in {"driver", "kernelcast"}:
        state["of"][change] = "other"
        (folder / "state.json").write_text(json.dumps(state))
    if change == "damage":
        (folder / "one.yaml").write_text("schema: [")
    effort = Effort.QUICK if change == "effort" else Effort.NORMAL
    fake.asked.clear()
    fake.outcomes["two"] = RESULTS["two"]
    calibrate_device(DEVICE, CalibrationSettings(effort=effort, is_fresh=change == "fresh"))
    assert fake.asked == ["one", "two"]


def test_only_adds_to_the_description_that_is_there(fake: FakeSuite) -> None:
    """Runs the benchmark that is named and keeps the rest of the file, but why it failed before."""
    with pytest.raises(InputError, match="no microbenchmark 'three'; there are: one, two"):
        CalibrationSettings(only=("three",))
    fake.outcomes["two"] = KernelRunError("it died")
    assert calibrate_device(DEVICE, CalibrationSettings()).machine.not_obtained == {
        "two": "it died"
    }
    fake.asked.clear()
    fake.outcomes["two"] = BenchmarkResult(
        name="two", caches=(CacheFacts(name="L1", load_bytes_per_s=measured(5e9)),)
    )
    done = calibrate_device(DEVICE, CalibrationSettings(only=("two",)))
    assert fake.asked == ["two"]
    assert done.machine.caches == (
        CacheFacts(name="L1", latency_s=measured(1e-9), load_bytes_per_s=measured(5e9)),
    )
    assert "launch_s" in done.machine.costs
    assert not done.machine.not_obtained


def test_only_does_not_mix_drivers(tmp_path: Path) -> None:
    """Starts from the driver's words where another driver made the description."""
    path = tmp_path / "mine.yaml"
    old = calibrate_device(DEVICE, CalibrationSettings(output=path)).machine
    write_machine(path, replace(old, driver="0"))
    done = calibrate_device(DEVICE, CalibrationSettings(only=("two",), output=path))
    assert done.machine.costs == {}
    assert not machine_path(DEVICE.id).exists()


def test_a_device_on_which_nothing_works_is_an_error(fake: FakeSuite) -> None:
    """Writes no description if every benchmark failed, and tries all again next time; gives up at
    once where the device itself does not open."""
    fake.outcomes = {"one": KernelRunError("it died"), "two": KernelRunError("it died too")}
    with pytest.raises(
        KernelRunError, match="no microbenchmark succeeded; the first said: it died"
    ):
        calibrate_device(DEVICE, CalibrationSettings())
    assert not machine_path(DEVICE.id).exists()
    fake.outcomes = dict(RESULTS)
    assert calibrate_device(DEVICE, CalibrationSettings()).resumed == ()
    fake.asked.clear()
    fake.outcomes["one"] = BrokenDeviceError("it does not build anything")
    with pytest.raises(BrokenDeviceError):
        calibrate_device(DEVICE, CalibrationSettings())
    assert fake.asked == ["one"]


def test_a_data_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Says so before anything is measured."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot be kept: Not a directory; name another folder"):
        calibrate_device(DEVICE, CalibrationSettings())


def machine(**facts: object) -> MachineDescription:
    return MachineDescription(id="a", name="A", kind=DeviceKind.CPU, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (TraitSource.MEASURED, TraitSource.MEASURED, 2.0),
        (TraitSource.MEASURED, TraitSource.REPORTED, 1.0),
        (TraitSource.ASSUMED, TraitSource.COMPUTED, 2.0),
        (TraitSource.PUBLISHED, TraitSource.ASSUMED, 1.0),
    ],
)
def test_less_certain_numbers_do_not_replace_more_certain_ones(
    old: TraitSource, new: TraitSource, value: float
) -> None:
    """Keeps the later number unless it is less certain, in fields and in mappings."""
    one = machine(clock_hz=measured(1.0, old), costs={"a_s": measured(1.0, old)})
    other = machine(clock_hz=measured(2.0, new), costs={"a_s": measured(2.0, new)})
    merged = merge_machines(one, other)
    assert merged.clock_hz is not None
    assert (merged.clock_hz.value, merged.costs["a_s"].value) == (value, value)


def test_what_is_obtained_later_is_no_longer_missing() -> None:
    """Takes a name off the list of missing numbers once it is there."""
    curve = Curve(name="walk/local", x_name="x", y_name="y", x=(1.0,), y=(2.0,))
    before = machine(
        not_obtained=dict.fromkeys(("launch_s", "walk/local", "peak/fp32", "other"), "no")
    )
    after = machine(
        costs={"launch_s": measured(1.0)}, curves=(curve,), not_obtained={"new": "why"},
        instructions=(InstructionFacts(name="fp32", peak_per_s=measured(1.0)),),
    )  # fmt: skip
    merged = merge_machines(before, after)
    assert merged.not_obtained == {"other": "no", "new": "why"}
    assert merged.curves == (curve,)
