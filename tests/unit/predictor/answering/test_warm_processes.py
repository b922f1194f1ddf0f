import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.predictor.answering.warm_processes import WarmProcesses
from kernelcast.records.errors import (
    EstimateTimeoutError,
    KernelcastError,
    KernelRunError,
    SignatureError,
)
from support.fake_executor import make_problem

# Python imports a module of this name at its start: it gives the child devices of ours.
STAND_INS = """
import os, signal, time
from dataclasses import replace

import kernelcast.predictor.answering.measuring as measuring
import kernelcast.sampling.discovery as discovery
import kernelcast.sampling.session as session
from kernelcast.predictor.answering.executors import ReportProgress
from kernelcast.records.errors import KernelRunError, SignatureError
from support.fake_executor import FakeExecutor


def run_estimate(session, task, *, keep, report, give_up=None):
    name = task.problem.name
    report("at work")
    if name == "hang":
        time.sleep(600)
    if name == "refuse":
        raise SignatureError("refused")
    if name == "break":
        raise KernelRunError("broken")
    if name == "bug":
        raise ZeroDivisionError
    outcome = FakeExecutor().sample(task, timeout_s=1, report=report)
    outcome = replace(outcome, row_failure=str(os.getpid()))
    if name == "late":
        keep(outcome)
    if name == "runs":
        keep(outcome)
        keep(replace(outcome, awaits_runs=True))
        report("measuring")
        time.sleep(600)
    if name in {"late", "die"}:
        os.kill(os.getpid(), signal.SIGKILL)
    return outcome


measuring.run_estimate = run_estimate
discovery.find_devices = lambda: []
discovery.choose_device = lambda device_id, _: (device_id,)
session.open_session = lambda device_id, folder: device_id
"""


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WarmProcesses]:
    """Give an executor whose children know the stand-ins."""
    (tmp_path / "sitecustomize.py").write_text(STAND_INS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    found = WarmProcesses()
    yield found
    found.close()


def ask(
    executor: WarmProcesses, name: str = "fine", *, device: str = "one", timeout_s: float = 200
) -> EstimateOutcome:
    """Have a problem sampled."""
    task = EstimateTask(
        problem=replace(make_problem(), name=name), device_id=device, settings=EstimateSettings()
    )
    return executor.sample(task, timeout_s=timeout_s, report=lambda _: None)


def number_of(outcome: EstimateOutcome) -> int:
    """Give the number of the process that answered."""
    return int(outcome.row_failure)


def is_gone(process_id: int) -> bool:
    """Tell whether a process of ours has ended, waiting a little."""
    for _ in range(100):
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_a_device_keeps_its_process(executor: WarmProcesses) -> None:
    """Tasks of a device share a process, refused ones too; other devices have others."""
    stages: list[str] = []
    task = EstimateTask(problem=make_problem(), device_id="one", settings=EstimateSettings())
    first = executor.sample(task, timeout_s=60, report=stages.append)
    assert stages == ["opening the device", "at work", "sampling"]
    with pytest.raises(SignatureError, match="refused"):
        ask(executor, "refuse")
    second = ask(executor)
    assert number_of(first) == number_of(second) != os.getpid()
    assert second.estimate.compile_seconds == first.estimate.compile_seconds
    assert number_of(ask(executor, device="two")) != number_of(first)
    executor.close()
    assert is_gone(number_of(first))


def test_what_goes_wrong_ends_the_process_and_not_us(executor: WarmProcesses) -> None:
    """Crashes, hangs and failed devices are errors; the next task is done by a new process."""
    last = number_of(ask(executor))
    wrong: list[tuple[str, type[Exception], str]] = [
        ("die", KernelRunError, "SIGKILL, stage: sampling"),
        ("hang", EstimateTimeoutError, "stage: at work"),
        ("break", KernelRunError, "broken"),
        ("bug", KernelcastError, "ZeroDivisionError"),
    ]
    for name, error, text in wrong:
        with pytest.raises(error, match=text):
            ask(executor, name, timeout_s=3 if name == "hang" else 200)
        assert is_gone(last)
        number = number_of(ask(executor))
        assert number != last
        last = number


def test_samples_survive_what_comes_after(executor: WarmProcesses) -> None:
    """A driver that crashes while features are made does not cost the samples."""
    outcome = ask(executor, "late")
    assert "SIGKILL" in outcome.row_failure
    assert outcome.estimate.seconds > 0
    assert number_of(ask(executor)) > 0


def test_runs_that_last_too_long_leave_the_prediction(executor: WarmProcesses) -> None:
    """The time limit is that of all together; the answer says that nothing was timed."""
    ask(executor)
    began_s = time.monotonic()
    outcome = ask(executor, "runs", timeout_s=3)
    assert time.monotonic() - began_s < 6
    assert outcome.estimate.seconds > 0
    assert outcome.estimate.measurement is None
    (told,) = [one for one in outcome.estimate.warnings if "whole runs" in one]
    assert "no answer within 3 s (stage: measuring)" in told


def test_an_idle_process_ends_and_another_serves(executor: WarmProcesses) -> None:
    """A process gives its device back after a while; nobody notices."""
    executor.children.idle_s = 0.2
    first = number_of(ask(executor))
    child = executor.children._places["one"]._child
    assert child is not None
    child.process.wait()
    assert number_of(ask(executor)) != first
