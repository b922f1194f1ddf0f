import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.processes import (
    CallerProcesses,
    EstimateOutcome,
    EstimateTask,
    ReportProgress,
    WarmProcesses,
    asked_by,
)
from kernelcast.records.errors import (
    EstimateTimeoutError,
    KernelcastError,
    KernelRunError,
    SignatureError,
)
from kernelcast.workers.process import ChildProcess
from support.fake_executor import make_problem

# Python imports a module of this name at its start: it gives the child devices of ours.
STAND_INS = """
import os, signal, time
from dataclasses import replace

import kernelcast.launches.source_check as source_work
import kernelcast.predictor.answering.measuring as measuring
from kernelcast.records.errors import KernelRunError, SignatureError
from kernelcast.sampling.host import TURNS
from support.fake_executor import FakeExecutor


def run_estimate(session, task, *, keep, report, give_up=None):
    name = task.problem.name
    report("at work")
    if name == "hang":
        with TURNS.measuring():
            time.sleep(600)
    if name == "measure":
        for _ in range(3):
            with TURNS.measuring(), open(os.environ["STAMPS"], "a") as file:
                begin_s = time.monotonic()
                time.sleep(0.03)
                print(begin_s, time.monotonic(), file=file)
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


def count_problem(problem, _):
    if problem.name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    items = problem.ndrange.work_item_count
    return {"none": (), "two": (items, items), "few": (items / 2,), "many": (1e13 * items,)}.get(
        problem.name, (items * float(problem.name),)
    )


source_work.count_problem = count_problem
measuring.run_estimate = run_estimate
measuring.find_devices_once = lambda: []
measuring.choose_device = lambda device_id, _: (device_id,)
measuring.open_session = lambda device_id, folder: device_id
"""


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have children know the stand-ins; give the file of their measurements."""
    (tmp_path / "sitecustomize.py").write_text(STAND_INS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("STAMPS", str(tmp_path / "stamps"))
    return tmp_path / "stamps"


@pytest.fixture
def executor(stand_ins: Path) -> Iterator[WarmProcesses]:
    del stand_ins
    found = WarmProcesses()
    yield found
    found.close()


@pytest.fixture
def callers(stand_ins: Path) -> Iterator[CallerProcesses]:
    found = CallerProcesses(turns=stand_ins.with_name("turns"))
    yield found
    found.close()


def ask(
    executor: WarmProcesses | CallerProcesses,
    name: str = "fine",
    *,
    device: str = "one",
    timeout_s: float = 200,
    report: ReportProgress = lambda _: None,
) -> EstimateOutcome:
    task = EstimateTask(
        problem=replace(make_problem(), name=name), device_id=device, settings=EstimateSettings()
    )
    return executor.sample(task, timeout_s=timeout_s, report=report)


def number_of(outcome: EstimateOutcome) -> int:
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
    first = ask(executor, report=stages.append)
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
            ask(executor, name, timeout_s=1.5 if name == "hang" else 200)
        assert is_gone(last)
        number = number_of(ask(executor))
        assert number != last
        last = number


def test_a_listener_that_fails_keeps_no_process(executor: WarmProcesses) -> None:
    """The next task is done although what the listener raised is kept, as interpreters keep it."""

    def fail(stage: str) -> None:
        raise ValueError(stage)

    with pytest.raises(ValueError, match="opening the device") as caught:
        ask(executor, report=fail)
    with ThreadPoolExecutor() as pool:
        assert pool.submit(ask, executor).result(60.0)
    assert caught.value.__traceback__ is not None


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
    outcome = ask(executor, "runs", timeout_s=1.5)
    assert time.monotonic() - began_s < 6
    assert outcome.estimate.seconds > 0
    assert outcome.estimate.measurement is None
    (told,) = [one for one in outcome.estimate.warnings if "whole runs" in one]
    assert "no answer within 1.5 s (stage: measuring)" in told


def test_a_process_serves_one_caller(callers: CallerProcesses) -> None:
    """Keeps callers and devices apart, ends the process of the caller who asked the longest ago,
    and all with the executor."""
    found = []
    for caller in ("a", "b", "c"):
        with asked_by(caller):
            found.append(number_of(ask(callers)))
            assert number_of(ask(callers, "another")) == found[-1]
    found.append(number_of(ask(callers, device="two")))
    assert len({*found}) == 4
    assert is_gone(found[0])
    with asked_by("b"):
        assert number_of(ask(callers)) == found[1]
    callers.close()
    assert all(map(is_gone, found))


def test_launches_find_processes_that_wait(
    callers: CallerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is started for each device before anything is asked, and serves all sources of a caller;
    the next waits for another caller, or for the end of the first."""
    starts: list[int] = []
    start = ChildProcess.start

    def count(**how: Any) -> ChildProcess:  # noqa: ANN401
        child = start(**how)
        starts.append(child.process.pid)
        return child

    monkeypatch.setattr(ChildProcess, "start", count)
    callers.make_ready(["one"])
    assert [number_of(ask(callers, name)) for name in ("first", "second")] == [starts[0]] * 2
    assert len(starts) == 2
    with pytest.raises(KernelRunError):
        ask(callers, "die")
    assert number_of(ask(callers, "third")) == starts[1]
    with asked_by("another caller"):
        assert number_of(ask(callers)) == starts[2]
    callers.close()
    callers.make_ready(["one"])
    assert len(starts) == 4


def count(
    executor: CallerProcesses, name: str, *, items: int = 640, asks: bool = True
) -> float | None:
    """Have the instructions of a problem counted; give those of a work-item."""
    problem = make_problem(work_groups=items // 64)
    found = executor.count_work(replace(problem, name=name), "", asks=asks)
    return None if found is None else found / items


def test_instructions_are_counted_once(callers: CallerProcesses) -> None:
    """Asks once for each size; what a process says that cannot be a count is none."""
    assert count(callers, "7", asks=False) is None
    assert count(callers, "7") == 7
    assert count(callers, "8") == 7
    assert count(callers, "8", asks=False) == 7
    for number, name in enumerate(["none", "two", "few", "many", "1e300", "nan", "-1", "die"], 20):
        assert count(callers, name, items=64 * number) is None, name
    assert count(callers, "9", items=1280 * 64) == 9


def test_devices_take_turns_and_one_that_hangs_stops_no_other(
    callers: CallerProcesses, stand_ins: Path
) -> None:
    """No process measures while another does; a hanging one has its turn until its time is over."""
    with ThreadPoolExecutor() as pool:
        devices = ("one", "two", "three")
        found = pool.map(lambda one: number_of(ask(callers, "measure", device=one)), devices)
        assert len({*found}) == 3
        stamps = sorted(tuple(map(float, one.split())) for one in stand_ins.open())
        assert len(stamps) == 9
        assert all(end <= begin for (_, end), (begin, _) in pairwise(stamps))
        hanging = pool.submit(ask, callers, "hang", timeout_s=5)
        while not callers.children._at_work:
            time.sleep(0.01)
        ask(callers, "measure", device="two")
        assert not hanging.done()
        with pytest.raises(EstimateTimeoutError):
            hanging.result()
