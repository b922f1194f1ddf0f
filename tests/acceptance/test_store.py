"""What was observed stays, whatever happens to the processes that told it."""

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import kernelcast
from acceptance.conftest import Run
from support.device_queues import list_devices, make_launch, make_queue, put

STORES = Path(__file__).parents[1] / "data" / "stores"
SOURCE = "kernel void add(global float *a) { a[get_global_id(0)] += 1.0f; }"
MOST = 400
"""Work-groups of the largest launch."""


def prepare() -> Callable[[int], kernelcast.Launch]:
    """Build the kernel; give what makes its launch of so many work-groups."""
    queue = make_queue(next(iter(list_devices())))
    program = cl.Program(queue.context, SOURCE).build()
    buffer = put(queue, np.ones(64 * MOST, np.float32))
    return lambda count: make_launch(program, "add", (64 * count,), (64,), [buffer], queue)


def observe_sizes(store: str, first: str, last: str) -> None:
    """Observe a launch of each of so many sizes once a line is heard; tell what is flushed."""
    make = prepare()
    with kernelcast.Predictor(store=store) as predictor:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(first), int(last)):
            observed = f"run {number}"
            predictor.observe(make(number + 1), 1e-3, is_first=False, key=observed, slowdown=1)
            if number % 10 == 9:
                predictor.flush()
                print(number + 1, flush=True)


@contextmanager
def start_writer(store: Path, first: int, last: int) -> Iterator[subprocess.Popen[str]]:
    """Start a program that observes a launch of each of so many sizes once it hears a line."""
    words = [sys.executable, __file__, str(store), str(first), str(last)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        try:
            yield writer
        finally:
            writer.kill()


def read_line(writer: subprocess.Popen[str]) -> str:
    """Read what a writer tells next."""
    assert writer.stdout is not None
    return writer.stdout.readline().strip()


def begin(writer: subprocess.Popen[str]) -> None:
    """Wait until a writer is ready and have it begin."""
    assert read_line(writer) == "ready"
    assert writer.stdin is not None
    writer.stdin.write("go\n")
    writer.stdin.flush()


def list_rows(run: Run, store: Path) -> list[dict[str, Any]]:
    """List all observations of a store that has no damage."""
    checked = run("data", "check", "--store", store, "--json")
    assert (checked.status, checked.json()) == (0, [])
    rows: list[dict[str, Any]] = run("data", "ls", "--rows", "--store", store, "--json").json()
    return rows


@pytest.mark.device
@pytest.mark.usefixtures("home")
def test_observations_survive_the_death_of_their_writer(run: Run, tmp_path: Path) -> None:
    """After `kill -9` of one of two programs that write at once all that was flushed is there.

    What both tell, and what is told again, counts once.
    """
    store = tmp_path / "rows.sqlite"
    with start_writer(store, 0, MOST) as killed, start_writer(store, 60, 200) as other:
        for writer in (killed, other):
            begin(writer)
        told = [int(read_line(killed)) for _ in range(9)][-1]
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert other.wait() == 0
    wanted = {64 * (number + 1) for number in (*range(told), *range(60, 200))}
    assert wanted <= {row["global_size"][0] for row in list_rows(run, store)}
    with start_writer(store, 0, told) as writer:
        begin(writer)
        assert writer.wait() == 0
    rows = list_rows(run, store)
    sizes = [row["global_size"][0] for row in rows]
    assert len({*sizes}) == len(sizes) == len({row["key"] for row in rows})
    assert {row["seconds"] for row in rows} == {1e-3}
    with kernelcast.Predictor(store=store) as predictor:
        known = predictor.estimate(prepare()(told))
        observed = {piece.kind: piece for piece in known.list_pieces()}
        assert observed["observed"].seconds == pytest.approx(1e-3)


@pytest.mark.parametrize("version", ["0001", "0003"])
def test_older_stores_are_read_and_newer_ones_left_alone(
    run: Run, tmp_path: Path, version: str
) -> None:
    """Rows of an older version stay, and so does a copy of the file; a newer one is refused."""
    store = tmp_path / "old.sqlite"
    text = (STORES / f"version-{version}.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(text)
        before = dict(connection.execute("select key, seconds from observations"))
    rows = list_rows(run, store)
    assert {row["key"]: row["seconds"] for row in rows} == before
    backup = tmp_path / f"old.sqlite.version-{version}.backup"
    with closing(sqlite3.connect(backup)) as connection:
        assert "\n".join(connection.iterdump()) + "\n" == text
    key = next(iter(before))
    (shown,) = run("data", "show", key[:16], "--store", store, "--json").json()
    assert shown["key"] == key
    newer = tmp_path / "newer.sqlite"
    with closing(sqlite3.connect(newer)) as connection:
        connection.executescript(re.sub(rf"'{version}'\);", "'9999');", text))
        held = list(connection.iterdump())
    ended = run("data", "ls", "--store", newer)
    assert ended.status != 0
    assert "version 9999" in ended.stderr
    assert "update kernelcast" in ended.stderr
    with closing(sqlite3.connect(newer)) as connection:
        assert list(connection.iterdump()) == held


if __name__ == "__main__":
    observe_sizes(*sys.argv[1:])
