import os
from pathlib import Path

import pytest

from kernelcast.workers import BESIDE, SPARE, Task, WarmChildren, take_result

STAND_IN = """
import os, sys

def look(name, report):
    return f"{os.getpid()} {name in sys.modules}"

def wait(pipe):
    open(pipe)
"""
LOOK = Task(entry="warm_stand_in:look", returns=str)


def _ask(children: WarmChildren, key: str, name: str) -> tuple[str, bool]:
    messages = children.stream(key, LOOK, name, timeout_s=30.0, subject="child")
    pid, _, is_there = take_result(LOOK, messages, "child").partition(" ")
    return pid, is_there == "True"


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have children find the task."""
    (tmp_path / "warm_stand_in.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")


def test_child_started_ahead_has_imported_its_modules() -> None:
    """Starts a child before its first task, which finds the modules imported."""
    children = WarmChildren()
    try:
        children.start_ahead(["wave"])
        children.start_ahead(["colorsys"])
        first = _ask(children, SPARE, "wave")
        assert first[1]
        assert _ask(children, "device", "colorsys") == (first[0], False)
    finally:
        children.close()


def test_child_started_ahead_has_called_its_functions(tmp_path: Path) -> None:
    """Calls a function with a text before the first task; one that fails keeps none from it."""
    children, place = WarmChildren(), tmp_path / "made"
    try:
        children.start_ahead(["no_such_module", "os:no_such:text", f"os:mkdir:{place}", "wave"])
        assert _ask(children, "device", "wave")[1]
        assert place.is_dir()
    finally:
        children.close()


def test_child_gets_ready_beside_its_first_task(tmp_path: Path) -> None:
    """Does its first task though what it is to do beside never ends."""
    children, place = WarmChildren(), tmp_path / "pipe"
    os.mkfifo(place)
    try:
        children.start_ahead([f"{BESIDE}warm_stand_in:wait:{place}", "wave"])
        assert _ask(children, "device", "wave")[1]
    finally:
        children.close()
