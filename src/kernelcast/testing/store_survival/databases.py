"""Databases that sequences use: made of a template, and looked at in the end."""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from kernelcast.service_state import open_state
from kernelcast.testing.observations import make_observation
from kernelcast.testing.older_stores import insert_as_then
from kernelcast.testing.store_survival.forking import Forked
from kernelcast.training_data.store import open_store
from kernelcast.training_data.store.connecting import connect, parse_url
from kernelcast.training_data.store.migrating import migrate

_TEMPLATE_ROWS = 20
_PATIENCE_S = 120.0
_FILE = "observations.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a database holds in the end: keys and measurements of rows, tokens, damage."""

    keys: list[str] = field(default_factory=list)
    measurements: list[str] = field(default_factory=list)
    tokens: dict[str, bool] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)


class TestedDatabase(Protocol):
    """Where sequences are run."""

    place: str
    """Of the database, as the service and commands are told it; from a sequence's data folder."""

    def prepare(self, data: Path, kind: str) -> None:
        """Make the database of a sequence: ``filled``, ``older`` or ``none``."""

    def look(self, data: Path) -> Held:
        """Read what is there and have the database check itself."""


class SqliteDatabase:
    """A SQLite file per sequence.

    Parameters
    ----------
    folder : Path
        For templates.
    """

    place = _FILE

    def __init__(self, folder: Path) -> None:
        self._templates = {one: folder / f"{one}.sqlite" for one in ("filled", "older")}
        work_apart(lambda: fill(str(self._templates["filled"])), folder)
        work_apart(lambda: fill_older(str(self._templates["older"])), folder)

    def prepare(self, data: Path, kind: str) -> None:
        """Copy a template; nobody has it open."""
        if kind in self._templates:
            shutil.copy(self._templates[kind], data / _FILE)

    def look(self, data: Path) -> Held:
        """Read with SQLite alone."""
        return look_apart(lambda: _look_at_file(data / _FILE), data)


class PostgresqlDatabase:
    """A database of a PostgreSQL cluster, made anew for each sequence.

    Parameters
    ----------
    folder : Path
        For logs.
    server : str
        URL of the cluster's database ``postgres``.
    name : str
        Of the database; several databases of a cluster have different ones.
    """

    def __init__(self, folder: Path, server: str, name: str) -> None:
        self._server = server
        self._name = name
        self.place = f"{server.rpartition('/')[0]}/{name}"
        for kind, make in (("filled", fill), ("older", fill_older)):
            self._execute(f"CREATE DATABASE {name}_{kind}")
            place = f"{self.place}_{kind}"
            work_apart(lambda make=make, place=place: make(place), folder)  # type: ignore[misc]  # the lambda keeps this turn's values

    def prepare(self, data: Path, kind: str) -> None:
        """Make the database anew; what still uses the last one is cut off."""
        del data
        template = "template1" if kind == "none" else f"{self._name}_{kind}"
        self._execute(f"DROP DATABASE IF EXISTS {self._name} WITH (FORCE)")
        self._execute(f"CREATE DATABASE {self._name} TEMPLATE {template} STRATEGY file_copy")

    def look(self, data: Path) -> Held:
        """Read with the server's amcheck beside."""
        return look_apart(lambda: _look_at_server(self.place), data)

    def _execute(self, command: str) -> None:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(command)


def fill(place: str) -> None:
    """Make a store with some rows and the service's tables."""
    open_state(place).close()
    with open_store(place) as store:
        store.add_many(map(make_observation, range(_TEMPLATE_ROWS)))


def fill_older(place: str) -> None:
    """Make a store of the first version, with some rows."""
    engine = connect(parse_url(place))
    migrate(engine, place, head="0001")
    insert_as_then(engine, [make_observation(number) for number in range(_TEMPLATE_ROWS)])
    engine.dispose()


def work_apart(work: Callable[[], None], folder: Path) -> None:
    """Do something in a process of its own, so that no database is ever opened in this one."""

    def do() -> int:
        work()
        return 0

    status = Forked(do, folder / "apart.log").wait(_PATIENCE_S)
    if status != 0:
        text = (folder / "apart.log").read_text(encoding="utf-8")
        msg = f"a process ended with status {status}: {text[-2000:]}"
        raise AssertionError(msg)


def look_apart(look: Callable[[], Held], folder: Path) -> Held:
    """Look at a database in a process of its own."""
    result = folder / "held.json"
    work_apart(lambda: _write(result, look()), folder)
    return Held(**json.loads(result.read_text(encoding="utf-8")))


def _write(path: Path, held: Held) -> None:
    path.write_text(json.dumps(asdict(held)), encoding="utf-8")


def _look_at_file(path: Path) -> Held:
    if not path.is_file():
        return Held()
    try:
        return _read_file(path)
    except sqlite3.DatabaseError as error:
        return Held(damage=[str(error)])


def _read_file(path: Path) -> Held:
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection:
        damage = [one for (one,) in connection.execute("PRAGMA integrity_check") if one != "ok"]
        tables = {one for (one,) in connection.execute("SELECT name FROM sqlite_schema")}
        rows: list[tuple[str, str]] = []
        tokens: dict[str, bool] = {}
        # A table that is not there holds nothing: the process was killed before it was made.
        if "observations" in tables:
            rows = connection.execute("SELECT key, measurement FROM observations").fetchall()
        if "service_tokens" in tables:
            found = connection.execute("SELECT id, revoked_at_us IS NOT NULL FROM service_tokens")
            tokens = {key: bool(is_revoked) for key, is_revoked in found}
    return _hold(rows, tokens, damage)


def _look_at_server(place: str) -> Held:
    import psycopg

    rows: list[tuple[str, str]] = []
    tokens: list[tuple[str, bool]] = []
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = {one for (one,) in found}
        if "observations" in tables:
            rows = connection.execute("SELECT key, measurement FROM observations").fetchall()
        if "service_tokens" in tables:
            tokens = connection.execute(
                "SELECT id, revoked_at_us IS NOT NULL FROM service_tokens"
            ).fetchall()
    with open_store(place) as store:
        return _hold(rows, dict(tokens), store.find_damage())


def _hold(rows: list[tuple[str, str]], tokens: dict[str, bool], damage: list[str]) -> Held:
    return Held(
        keys=[key for key, _ in rows],
        measurements=[name for _, name in rows],
        tokens=tokens,
        damage=damage,
    )
