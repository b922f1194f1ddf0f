import os
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelcast.predictor import isolation, tasks
from kernelcast.predictor.isolation import run_isolated
from kernelcast.records.errors import (
    EstimateTimeoutError,
    KernelcastError,
    KernelRunError,
    SignatureError,
)

# Python imports a module of this name at its start: it gives the child tasks of ours.
STAND_INS = """
import os, signal, sys, time

import kernelcast.predictor.tasks as tasks
from kernelcast.records.errors import SignatureError


def echo(arguments, report):
    for stage in arguments:
        report(stage)
    return list(arguments)


def die(arguments, report):
    report("about to die")
    print("the driver's last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), getattr(signal, arguments))
    time.sleep(600)


def leave(arguments, report):
    os._exit(arguments)


def hang(arguments, report):
    report(str(os.getpid()))
    time.sleep(600)


def refuse(arguments, report):
    raise SignatureError(arguments)


def explode(arguments, report):
    raise ValueError(arguments)


def chatter(arguments, report):
    for stream in (sys.stdout, sys.stderr):
        stream.write("noise of a compiler\\n" * arguments)
    return "done"


tasks._TASKS.update(
    (one.__name__, one) for one in (echo, die, leave, hang, refuse, explode, chatter)
)
"""


@pytest.fixture(autouse=True)
def _stand_in_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the child processes know the tasks of this module."""
    (tmp_path / "sitecustomize.py").write_text(STAND_INS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def is_alive(process_id: int) -> bool:
    """Tell whether a process exists."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_gives_the_result_and_reports_progress() -> None:
    """Gives what the task returned and passes on its stages in their order."""
    stages: list[str] = []
    result = run_isolated(
        "echo", ("one", "two", "three"), timeout_s=200, subject="d", report=stages.append
    )
    assert result == ["one", "two", "three"]
    assert stages == ["one", "two", "three"]


def test_errors_arrive_as_they_were_raised() -> None:
    """Raises in the parent what the task raised, with its message."""
    with pytest.raises(SignatureError, match=r"^argument 3: a buffer given$"):
        run_isolated("refuse", "argument 3: a buffer given", timeout_s=200, subject="d")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE", "SIGKILL"])
def test_a_crash_ends_the_child_only(name: str) -> None:
    """Turns a child that dies by a signal into an error with signal, stage and last words."""
    with pytest.raises(KernelRunError) as caught:
        run_isolated("die", name, timeout_s=200, subject="pocl-cpu-1234")
    said = str(caught.value)
    assert said.startswith("pocl-cpu-1234: ")
    for part in (name, "about to die", "the driver's last words"):
        assert part in said


def test_a_child_that_leaves_is_an_error() -> None:
    """Turns a child that ends without an answer into an error with its exit status."""
    with pytest.raises(KernelRunError, match=r"exit status 3"):
        run_isolated("leave", 3, timeout_s=200, subject="d")


def test_other_exceptions_are_errors_with_their_text() -> None:
    """Turns an exception that is none of ours into one of ours that shows its text."""
    with pytest.raises(KernelcastError, match="ValueError: not foreseen"):
        run_isolated("explode", "not foreseen", timeout_s=200, subject="d")


def test_a_hang_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends a child that does not answer when its time is over, and leaves no process behind."""
    stages: list[str] = []
    # Time stands still until the child hangs: how long it takes to start is the machine's affair.
    clock = SimpleNamespace(monotonic=lambda: 1000.0 * len(stages))
    monkeypatch.setattr(isolation, "time", clock)
    with pytest.raises(EstimateTimeoutError) as caught:
        run_isolated("hang", None, timeout_s=200, subject="intel-cpu", report=stages.append)
    (process_id,) = stages
    assert str(caught.value).startswith(
        f"intel-cpu: no answer within 200 s (stage: {process_id}); the kernel may never end."
    )
    assert not is_alive(int(process_id))


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_parent_leaves_no_child(interrupt: type[BaseException]) -> None:
    """Ends the child where the parent is interrupted while it waits."""
    seen: list[int] = []

    def _interrupt(stage: str) -> None:
        seen.append(int(stage))
        raise interrupt

    with pytest.raises(interrupt):
        run_isolated("hang", None, timeout_s=200, subject="d", report=_interrupt)
    assert not is_alive(seen[0])


def test_talkative_compilers_do_not_block() -> None:
    """Gives the answer of a child that writes megabytes on its output and error streams."""
    assert run_isolated("chatter", 200_000, timeout_s=200, subject="d") == "done"


def test_every_task_is_a_function() -> None:
    """Tasks that are named by their module are there, under the name that parents ask for."""
    for name, found in tasks._TASKS.items():
        if isinstance(found, str):
            assert callable(getattr(import_module(f"kernelcast.predictor.{found}"), name))
