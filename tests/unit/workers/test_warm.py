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


def test_child_started_ahead_is_ready(tmp_path: Path) -> None:
    """Imports modules and calls functions with a text before its first task; does that though a
    step fails, and one to do beside never ends; any device takes it over."""
    children, place = WarmChildren(), tmp_path / "made"
    os.mkfifo(tmp_path / "pipe")
    steps = ["no_such_module", "os:no_such:text", f"os:mkdir:{place}", "wave",
             f"{BESIDE}warm_stand_in:wait:{tmp_path / 'pipe'}"]  # fmt: skip
    try:
        children.start_ahead(steps)
        children.start_ahead(["colorsys"])
        first = _ask(children, SPARE, "wave")
        assert first[1]
        assert place.is_dir()
        assert _ask(children, "device", "colorsys") == (first[0], False)
    finally:
        children.close()
