"""Commands and jobs in forked processes."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kernelcast.cli import main as run_program
from kernelcast.service import job_process
from kernelcast.testing.store_survival.forking import Forked
from kernelcast.testing.store_survival.serving import be_user

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
