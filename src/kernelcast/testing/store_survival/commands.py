"""Commands and jobs in forked processes."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kernelcast.cli import main as run_program
from kernelcast.service import job_process
from kernelcast.testing.observations import make_observation
from kernelcast.testing.store_survival.databases import work_apart
from kernelcast.testing.store_survival.forking import Forked
from kernelcast.testing.store_survival.serving import be_user
from kernelcast.training_data.parquet import export_parquet
from kernelcast.training_data.store import open_store

_FILES = 8
_ROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFile:
    """Rows in a Parquet file and, the same ones, in a store."""

    parquet: Path
    store: Path
    keys: frozenset[str]


def make_import_files(folder: Path) -> list[ImportFile]:
    """Make the files, in a process of its own."""
    work_apart(lambda: _make(folder), folder)
    return [
        ImportFile(
            parquet=folder / f"rows{number}.parquet",
            store=folder / f"rows{number}.sqlite",
            keys=frozenset(json.loads((folder / f"rows{number}.json").read_text("utf-8"))),
        )
        for number in range(_FILES)
    ]


def _make(folder: Path) -> None:
    for number in range(_FILES):
        first = 1000 * (number + 1)
        rows = [make_observation(one) for one in range(first, first + _ROWS)]
        with open_store(folder / f"rows{number}.sqlite") as store:
            store.add_many(rows)
            export_parquet(store, folder / f"rows{number}.parquet")
        keys = json.dumps([one.key for one in rows])
        (folder / f"rows{number}.json").write_text(keys, encoding="utf-8")


_WITH_DATABASE: Final = "serve"  # whose option is called --database, the others' --store
# Cheap ones: what is learned does not matter here.
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "validate": {"models": ["two_point", "linear"]},
    "train": {"model": "ridge", "validate": False},
}


def run_command(words: Sequence[str], data: Path, place: str, log: Path) -> Forked:
    """Start ``kernelcast`` with these words on a store."""

    def work() -> None:
        be_user(data)
        option = "--database" if words[0] == _WITH_DATABASE else "--store"
        sys.argv = ["kernelcast", *words, option, place]
        run_program()

    return Forked(work, log)


def run_job(kind: str, data: Path, place: str) -> Forked:
    """Start the process that does a job, as the service starts it."""
    order: dict[str, Any] = {
        "kind": kind, "options": _OPTIONS[kind], "database": place, "registry": None,
    }  # fmt: skip

    def work() -> None:
        be_user(data)
        read_end, write_end = os.pipe()
        # Our own end of the lifeline stays open: this process is ended by signals alone.
        os.write(write_end, json.dumps(order).encode() + b"\n")
        os.dup2(read_end, 0)
        os.close(read_end)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        told = os.open(data / "job.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        sys.argv = ["job_process", str(told)]
        job_process.main()

    return Forked(work, data / "commands.log")
