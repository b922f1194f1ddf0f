import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kernelcast.records.errors import (
    EstimateTimeoutError,
    KernelcastError,
    KernelRunError,
    SignatureError,
)
from kernelcast.workers import (
    BESIDE,
    BUILDING,
    SPARE,
    Task,
    WarmChildren,
    process,
    run_isolated,
)

# What a child can be asked here.
STAND_INS = """
import contextlib, os, signal, sys, time

from kernelcast.records.errors import SignatureError


def echo(arguments, report):
    for stage in arguments:
        report(stage)
    return list(arguments)


def die(arguments, report):
    name, stage = arguments
    report(stage)
    print("the driver's last words\\nPLEASE submit a bug report", file=sys.stderr, flush=True)
    os.kill(os.getpid(), getattr(signal, name))
    time.sleep(600)


def leave(arguments, report):
    os._exit(arguments)


def hang(arguments, report):
    report(arguments or str(os.getpid()))
    time.sleep(600)


def refuse(arguments, report):
    raise SignatureError(arguments)


def explode(arguments, report):
    raise ValueError(arguments)


def look(name, report):
    return f"{os.getpid()} {name in sys.modules}"


def wait(pipe):
    open(pipe)


# What a kernel could do: write to each of its descriptors, or close them, and go on.
def shout(arguments, report):
    report(str(os.getpid()))
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            os.set_blocking(descriptor, False)
            if descriptor > 2:
                os.write(descriptor, b"garbage" * 1000)
    time.sleep(600)


def hang_up(arguments, report):
    report(str(os.getpid()))
    os.closerange(3, 4096)
    time.sleep(600)


def chatter(arguments, report):
    for stream in (sys.stdout, sys.stderr):
        stream.write("noise of a compiler\\n" * arguments)
    return "done"
"""


@pytest.fixture(autouse=True)
def _stand_in_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the child processes know the tasks of this module."""
    (tmp_path / "stand_ins.py").write_text(STAND_INS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


def ask(name: str, arguments: object, *, returns: Any = str, **options: Any) -> Any:  # noqa: ANN401
    task = Task(entry=f"stand_ins:{name}", returns=returns)
    return run_isolated(task, arguments, **{"timeout_s": 200, "subject": "d", **options})


def test_gives_the_result_and_reports_progress() -> None:
    stages: list[str] = []
    result = ask("echo", ("one", "two", "three"), returns=list[str], report=stages.append)
    assert result == ["one", "two", "three"]
    assert stages == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("name", "argument", "error", "told"),
    [
        ("refuse", "argument 3: a buffer given", SignatureError, r"^argument 3: a buffer given$"),
        ("leave", 3, KernelRunError, "exit status 3"),
        ("explode", "not foreseen", KernelcastError, "ValueError: not foreseen"),
    ],
)
def test_errors_arrive_as_they_were_raised(
    name: str, argument: object, error: type[Exception], told: str
) -> None:
    """Ours as they are, others as one of ours with their text, an end with its exit status."""
    with pytest.raises(error, match=told):
        ask(name, argument)


@pytest.mark.parametrize(
    ("name", "stage", "blamed"),
    [
        ("SIGSEGV", "sampling", "outside its buffers"),
        ("SIGABRT", BUILDING, "device's compiler"),
        ("SIGKILL", "sampling", "outside its buffers"),
    ],
)
def test_a_crash_ends_the_child_only(name: str, stage: str, blamed: str) -> None:
    """A child that dies by a signal is an error with signal, stage and last words, LLVM's left out;
    it blames the compiler while that worked, the kernel's accesses later."""
    with pytest.raises(KernelRunError) as caught:
        ask("die", (name, stage), subject="pocl-cpu-1234")
    said = str(caught.value)
    assert said.startswith(f"pocl-cpu-1234: the process that ran the kernel died (signal {name}, s")
    assert f"stage: {stage})" in said
    causes = {one for one in ("device's compiler", "outside its buffers") if one in said}
    assert causes == {blamed}
    assert said.endswith("; it wrote: the driver's last words")


@pytest.mark.parametrize(
    ("stage", "suspect"), [(None, "the kernel"), (BUILDING, "the device's compiler")]
)
def test_a_hang_ends_in_time(
    monkeypatch: pytest.MonkeyPatch, stage: str | None, suspect: str
) -> None:
    """Ends a child that does not answer when its time is over, and leaves no process behind."""
    stages: list[str] = []
    # Time stands still until the child hangs: how long it takes to start is the machine's affair.
    clock = SimpleNamespace(monotonic=lambda: 1000.0 * len(stages))
    monkeypatch.setattr(process, "time", clock)
    with pytest.raises(EstimateTimeoutError) as caught:
        ask("hang", stage, subject="intel-cpu", report=stages.append)
    (told,) = stages
    assert str(caught.value).startswith(
        f"intel-cpu: no answer within 200 s (stage: {told}); {suspect} may never end."
    )
    assert stage is not None or not Path(f"/proc/{told}").exists()


def test_an_interrupted_parent_leaves_no_child() -> None:
    interrupt = Mock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        ask("hang", None, report=interrupt)
    assert not Path(f"/proc/{interrupt.call_args.args[0]}").exists()


@pytest.mark.parametrize(("name", "text"), [("shout", "no answer"), ("hang_up", "died")])
def test_a_child_that_misbehaves_is_killed(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that sends garbage or hangs up is gone afterwards."""
    monkeypatch.setattr(process, "_LAST_S", 0.1)
    stages: list[str] = []
    with pytest.raises(KernelRunError, match=text):
        ask(name, None, report=stages.append)
    assert not Path(f"/proc/{stages[0]}").exists()


def test_talkative_compilers_do_not_block() -> None:
    """Gives the answer of a child that writes megabytes on its output and error streams."""
    assert ask("chatter", 200_000) == "done"


def test_child_started_ahead_is_ready(tmp_path: Path) -> None:
    """Imports modules and calls functions with a text before its first task; does that though a
    step fails, and one to do beside never ends; any device takes it over."""
    look = Task(entry="stand_ins:look", returns=str)

    def ask_child(key: str, name: str) -> list[str]:
        return children.run(key, look, name, timeout_s=30.0, subject="child").split()

    children, place = WarmChildren(), tmp_path / "made"
    os.mkfifo(tmp_path / "pipe")
    steps = ["no_such_module", "os:no_such:text", f"os:mkdir:{place}", "wave",
             f"{BESIDE}stand_ins:wait:{tmp_path / 'pipe'}"]  # fmt: skip
    try:
        children.start_ahead(steps)
        children.start_ahead(["colorsys"])
        process_id, is_imported = ask_child(SPARE, "wave")
        assert is_imported == "True"
        assert place.is_dir()
        assert ask_child("device", "colorsys") == [process_id, "False"]
    finally:
        children.close()


PARENT = """
import subprocess, sys, threading, time

CHILD = '''
import sys, time
from kernelcast.workers.child_main import die_with_parent
die_with_parent()
print(sys.stdin.read() == "", flush=True)
sum(range(10 ** 12))  # as a driver that never lets go of the interpreter
'''
found = []


def start():
    found.append(subprocess.Popen([sys.executable, "-P", "-c", CHILD], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE))


thread = threading.Thread(target=start)
thread.start()
thread.join()  # what started it has ended, and it lives on
found[0].stdout.readline()
print(found[0].pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux sends the signal")
def test_a_busy_child_ends_with_its_killed_parent() -> None:
    """A child that never comes back to Python ends with its parent, not with a thread of it."""
    with subprocess.Popen([sys.executable, "-P", "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            assert select.select([child], [], [], 0.2)[0] == []  # it goes on
            parent.send_signal(signal.SIGKILL)
            assert select.select([child], [], [], 10)[0] == [child]  # it has ended
        finally:
            parent.kill()
            os.close(child)
