import itertools
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.single_kernel_processes import (
    SingleKernelProcesses,
    asked_by,
)
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.records.errors import EstimateTimeoutError, KernelRunError
from kernelcast.records.kernel import Kernel
from support.fake_executor import make_problem

# Python imports a module of this name at its start: it gives the child devices of ours.
STAND_INS = """
import os, signal, time
from dataclasses import replace

import kernelcast.launches.source_work as source_work
import kernelcast.predictor.answering.measuring as measuring
import kernelcast.sampling.discovery as discovery
import kernelcast.sampling.session as session
from kernelcast.sampling.core_turns import TURNS
from support.fake_executor import FakeExecutor


def stamp(stage):
    begin_s = time.monotonic()
    time.sleep(0.03)
    with open(os.path.join(os.environ["STAMPS"], str(os.getpid())), "a") as file:
        print(stage, begin_s, time.monotonic(), file=file)


def run_estimate(session, task, *, keep, report, give_up=None):
    if task.problem.name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task.problem.name == "measure patiently":
        TURNS._most_s = 600
        with TURNS.preparing():
            stamp("prepare")
        for _ in range(5):
            with TURNS.measuring():
                stamp("measure")
    if task.problem.name == "measure":
        with TURNS.measuring():
            stamp("measure")
    if task.problem.name == "hang":
        with TURNS.measuring():
            time.sleep(600)
    outcome = FakeExecutor().sample(task, timeout_s=1, report=report)
    return replace(outcome, row_failure=str(os.getpid()))


def count_problem(problem, _):
    if problem.name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    items = problem.ndrange.work_item_count
    return {"none": (), "two": (items, items), "few": (items / 2,), "many": (1e13 * items,)}.get(
        problem.name, (items * float(problem.name),)
    )


source_work.count_problem = count_problem
measuring.run_estimate = run_estimate
discovery.find_devices = lambda: []
discovery.choose_device = lambda device_id, _: (device_id,)
session.open_session = lambda device_id, folder: device_id
"""


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SingleKernelProcesses]:
    """Give an executor whose processes know the stand-ins."""
    (tmp_path / "sitecustomize.py").write_text(STAND_INS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("STAMPS", str(tmp_path / "stamps"))
    (tmp_path / "stamps").mkdir()
    found = SingleKernelProcesses(turns=tmp_path / "turns", apart_s=0.0)
    yield found
    found.close()


def ask(
    executor: SingleKernelProcesses,
    source: str = "a",
    *,
    device: str = "one",
    name: str = "fine",
    timeout_s: float = 200,
) -> int:
    """Have a problem sampled; give the number of the process that answered."""
    problem = make_problem()
    kernel = Kernel(name=problem.kernel.name, source=f"// {source}\n{problem.kernel.source}")
    task = EstimateTask(
        problem=replace(problem, name=name, kernel=kernel), device_id=device,
        settings=EstimateSettings(),
    )  # fmt: skip
    outcome: EstimateOutcome = executor.sample(task, timeout_s=timeout_s, report=lambda _: None)
    return int(outcome.row_failure)


def is_gone(process_id: int) -> bool:
    """Tell whether a process of ours has ended, waiting a little."""
    for _ in range(200):
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def spare_of(executor: SingleKernelProcesses, device: str = "one") -> int:
    """Give the number of the process that waits for a device's next kernel."""
    child = executor._spares[device]._child
    assert child is not None
    return child.process.pid


def test_a_process_serves_one_kernel_of_one_caller(executor: SingleKernelProcesses) -> None:
    """Keeps what another kernel, caller or device could spoil apart."""
    first = ask(executor)
    assert ask(executor) == first
    assert ask(executor, "b") != first
    assert ask(executor, device="two") != first
    with asked_by("somebody"):
        theirs = ask(executor)
        assert theirs != first
        assert ask(executor) == theirs


def test_the_first_launch_finds_a_process_that_waits(executor: SingleKernelProcesses) -> None:
    """Starts one for each device before anything is asked, and another once it is taken."""
    executor.make_ready(["one", "two"])
    waiting = spare_of(executor)
    assert spare_of(executor, "two") != waiting
    assert ask(executor) == waiting
    following = spare_of(executor)
    assert following != waiting
    assert ask(executor) == waiting
    assert spare_of(executor) == following
    assert ask(executor, "b") == following


def test_no_process_is_started_while_more_may_be_asked(executor: SingleKernelProcesses) -> None:
    """Others are started once nobody has asked for a while, as often as that comes about."""
    executor.make_ready(["one"])
    executor.apart_s = 600.0
    ask(executor)
    assert not executor._spares
    executor.apart_s = 0.01
    ask(executor)
    for _ in range(1000):
        if executor._spares:
            break
        time.sleep(0.02)
    waiting = spare_of(executor)
    assert ask(executor, "b") == waiting


def test_a_process_that_died_is_replaced(executor: SingleKernelProcesses) -> None:
    """Answers the next launch of the kernel."""
    first = ask(executor)
    with pytest.raises(KernelRunError):
        ask(executor, name="die")
    assert ask(executor) != first


def test_few_kernels_keep_their_processes(executor: SingleKernelProcesses) -> None:
    """Ends the process of the kernel that was asked for the longest ago."""
    first, second = ask(executor, "a"), ask(executor, "b")
    assert ask(executor, "a") == first
    ask(executor, "c")
    assert is_gone(second)
    assert ask(executor, "a") == first


def test_all_processes_end_with_it(executor: SingleKernelProcesses) -> None:
    """Leaves none behind, and starts no further one to wait."""
    executor.make_ready(["one"])
    found = [ask(executor), spare_of(executor)]
    executor.close()
    assert all(map(is_gone, found))
    executor.make_ready(["one"])
    assert not executor._spares


def count(
    executor: SingleKernelProcesses, name: str, *, items: int = 640, asks: bool = True
) -> float | None:
    """Have the instructions of a problem counted; give those of a work-item."""
    problem = make_problem(work_groups=items // 64)
    found = executor.count_work(replace(problem, name=name), "", asks=asks)
    return None if found is None else found / items


def test_instructions_are_counted_once_where_the_source_may_be_read(
    executor: SingleKernelProcesses,
) -> None:
    """By the kernel's process; each size is asked once, and known to who may not ask."""
    assert count(executor, "7", asks=False) is None
    assert count(executor, "7") == 7
    assert count(executor, "8") == 7
    assert count(executor, "8", asks=False) == 7
    assert count(executor, "8", items=1280) == 8


@pytest.mark.parametrize("name", ["none", "two", "few", "many", "1e300", "nan", "-1", "die"])
def test_counts_are_a_strangers_word(executor: SingleKernelProcesses, name: str) -> None:
    """What cannot be one is none; the next launch is asked for as if nothing had happened."""
    assert count(executor, name) is None
    assert count(executor, "9", items=1280) == 9


def test_who_reads_sources_is_another_process_than_who_samples(
    executor: SingleKernelProcesses,
) -> None:
    """Observations are counted while the kernel's device is at work; a sampling's own reads it."""
    sampling = ask(executor)
    assert count(executor, "5") == 5
    (reading,) = [one for key, one in executor._kernels.items() if not key[0]]
    assert reading._child is not None
    assert reading._child.process.pid != sampling
    assert ask(executor) == sampling


def test_devices_that_share_processors_take_turns(
    executor: SingleKernelProcesses, tmp_path: Path
) -> None:
    """None measures while another measures or gets ready, in whichever process that is."""
    with ThreadPoolExecutor() as pool:
        devices = ("one", "two", "three")
        processes = {
            *pool.map(lambda one: ask(executor, device=one, name="measure patiently"), devices)
        }
    stages = [
        (stage, float(begin_s), float(end_s))
        for one in processes
        for stage, begin_s, end_s in map(str.split, (tmp_path / "stamps" / f"{one}").open())
    ]
    assert len(processes) == 3
    assert len(stages) == 3 * (1 + 5)
    for (stage, begin_s, end_s), (other, other_begin_s, other_end_s) in itertools.combinations(
        stages, 2
    ):
        is_apart = end_s <= other_begin_s or other_end_s <= begin_s
        assert is_apart or "measure" not in {stage, other}


def test_a_kernel_that_hangs_stops_no_other_device(executor: SingleKernelProcesses) -> None:
    """It has its turn until its time is over; others go on before."""
    ask(executor, device="two")
    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(ask, executor, name="hang", timeout_s=15)
        while not executor._at_work:
            time.sleep(0.01)
        ask(executor, device="two", name="measure")
        assert not hanging.done()
        with pytest.raises(EstimateTimeoutError):
            hanging.result()
