"""Runs random sequences of all that uses a store, kills included, and counts what was lost.

``python benchmarks/store_survival.py --database sqlite --sequences 1000`` runs sequences of
observations over HTTP, pages, commands, jobs, imports, ``kill -9`` and restarts, each over a store
of its own. Whatever was said to be stored must be there in the end, and the database must find
nothing wrong with itself. Ctrl-C keeps the sequences that are done; the next run goes on.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from machine import describe_machine

from kernelcast.testing.postgresql_cluster import PostgresqlCluster
from kernelcast.testing.store_survival import (
    Outcome,
    PostgresqlDatabase,
    SqliteDatabase,
    TestedDatabase,
    preload,
    run_sequence,
    summarise,
)
from kernelcast.testing.store_survival.commands import ImportFile, make_import_files

RESULTS = Path(__file__).parent / "results" / "store_survival"


class _Worker:
    """What a process that runs sequences keeps: made once, in itself."""

    database: TestedDatabase
    import_files: list[ImportFile]
    folder: Path


def set_up(folder: str, server: str | None) -> None:
    """Prepare this process; it opens no database."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload()
    _Worker.folder = Path(folder) / str(os.getpid())
    _Worker.folder.mkdir()
    _Worker.import_files = make_import_files(_Worker.folder)
    if server is None:
        _Worker.database = SqliteDatabase(_Worker.folder)
    else:
        _Worker.database = PostgresqlDatabase(_Worker.folder, server, f"survival{os.getpid()}")


def run_one(seed: int) -> Outcome:
    """Run a sequence; its files stay only where something was wrong."""
    folder = _Worker.folder / f"{seed}"
    folder.mkdir()
    try:
        found = run_sequence(seed, _Worker.database, _Worker.import_files, folder)
    except Exception as error:  # noqa: BLE001 - told in the result
        return Outcome(
            seed=seed, steps={}, acknowledged=0, lost=0, tokens_acknowledged=0, tokens_lost=0,
            damage=[], trouble=[f"the sequence failed: {error!r}"],
        )  # fmt: skip
    shutil.rmtree(folder, ignore_errors=True)
    return found


def run(database: str, sequences: int, jobs: int) -> None:
    """Run the sequences that are not done yet, and write the result."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    partial = RESULTS / f"{database}.jsonl"
    done = read_partial(partial)
    left = [seed for seed in range(1, sequences + 1) if seed not in done]
    began_s = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="kernelcast-survival-") as folder,
        serve_database(database) as server,
        multiprocessing.get_context("fork").Pool(jobs, set_up, (folder, server)) as pool,
        contextlib.suppress(KeyboardInterrupt),
        partial.open("a", encoding="utf-8") as stream,
    ):
        for number, one in enumerate(pool.imap_unordered(run_one, left), start=1):
            done[one.seed] = one
            stream.write(json.dumps(asdict(one)) + "\n")
            stream.flush()
            tell(number, len(left), time.monotonic() - began_s, done)
    write(database, done, is_over=len(done) >= sequences)
    if len(done) >= sequences:
        partial.unlink()


def read_partial(path: Path) -> dict[int, Outcome]:
    """Read what an earlier run has done."""
    if not path.is_file():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["seed"]: Outcome(**row) for row in rows}


@contextlib.contextmanager
def serve_database(database: str) -> Iterator[str | None]:
    """Run the server of a database while the block runs; SQLite has none."""
    if database == "sqlite":
        yield None
        return
    with PostgresqlCluster() as cluster:
        yield cluster.url


def tell(number: int, count: int, elapsed_s: float, done: dict[int, Outcome]) -> None:
    """Print a line now and then, and at once where something is wrong."""
    found = summarise(done.values())
    if number % 10 and number != count and not found.sequences_with_loss_or_damage:
        return
    print(
        f"{number} of {count} in {elapsed_s:.0f} s: {found.rows_acknowledged:,} rows acknowledged, "
        f"{found.rows_lost:,} lost, {found.integrity_checks_clean} of {found.integrity_checks} "
        f"checks clean, trouble in {len(found.sequences_with_trouble)}",
        flush=True,
    )


def write(database: str, done: dict[int, Outcome], *, is_over: bool) -> None:
    """Write the result, or show where it stands."""
    result = {"machine": describe_machine(), "database": database} | asdict(
        summarise(done.values())
    )
    text = json.dumps(result, indent=1)
    if is_over:
        (RESULTS / f"{database}.json").write_text(text + "\n", encoding="utf-8")
    print(text)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    run(asked.database, asked.sequences, asked.jobs)


if __name__ == "__main__":
    main()
