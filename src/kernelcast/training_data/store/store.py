"""Observations in a database that several threads and processes use at once."""

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import FailureRecord, Observation
from kernelcast.records.private_files import close_to_others, make_private_file, make_private_folder
from kernelcast.training_data.store.connecting import (
    Database,
    StoreError,
    bring_up_to_date,
    locate,
    read_sqlite_code,
    speak_plainly,
)
from kernelcast.training_data.store.schema import (
    EVERYTHING,
    FAILURE_COLUMNS,
    FAILURES,
    FEATURE_SCHEMAS,
    HEAD,
    METADATA,
    OBSERVATIONS,
    VERSION_TABLE,
    Selection,
    dump,
    list_conditions,
    observation_to_row,
    record_to_row,
    row_to_failure,
    row_to_observation,
)

_LOGGER = logging.getLogger(__name__)
# "kcsw" as a number: not the lock of migrations.
_PG_WRITER_LOCK = 0x6B637377


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRows:
    added: int = 0
    replaced: int = 0
    known: int = 0
    changed: tuple[str, ...] = field(default=(), compare=False)

    def __add__(self, other: "AddedRows") -> "AddedRows":
        return AddedRows(
            added=self.added + other.added,
            replaced=self.replaced + other.replaced,
            known=self.known + other.known,
            changed=self.changed + other.changed,
        )


def _add_rows(
    connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]], *, replace: bool
) -> AddedRows:
    by_key = {row["key"]: row for row in rows}  # of equal keys the last one counts
    # Give the seconds of those keys that are there; failures have none.
    columns = (table.c.key, table.c.get("seconds", sa.null()))
    found = connection.execute(sa.select(*columns).where(table.c.key.in_(list(by_key))))
    known = {row[0]: row[1] for row in found}
    if known and replace:
        connection.execute(sa.delete(table).where(table.c.key.in_(list(known))))
    new = [row for key, row in by_key.items() if replace or key not in known]
    if new:
        connection.execute(sa.insert(table), new)
    repeats = len(rows) - len(by_key)
    if replace:
        return AddedRows(added=len(new) - len(known), replaced=len(known) + repeats)
    told = {key: row.get("seconds") for key, row in by_key.items()} | known
    changed = tuple(row["key"] for row in rows if row.get("seconds") != told[row["key"]])
    return AddedRows(added=len(new), known=len(known) + repeats, changed=changed)


_SQLITE_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class Store(Database):
    """Threads share a store, also pickled or after a fork; each writing call is a transaction."""

    def __init__(self, url: sa.URL, where: str) -> None:
        super().__init__(url, where, writer_lock=_PG_WRITER_LOCK)

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.url, self.where)

    @property
    def address(self) -> str:
        """URL of the database, its password too: no text to show."""
        return self.url.render_as_string(hide_password=False)

    def add(self, observation: Observation, *, replace: bool = False) -> bool:
        return self.add_many([observation], replace=replace).added == 1

    def add_many(
        self,
        observations: Iterable[Observation],
        *,
        replace: bool = False,
        check: Callable[[AddedRows], None] = lambda _: None,
    ) -> AddedRows:
        """Add observations in one transaction: an error leaves none of them."""
        total, rest = AddedRows(), iter(observations)
        with self.write() as connection:
            while batch := list(islice(rest, 500)):
                schemas = {one.features.schema for one in batch if one.features}
                by_id = {one.id: one for one in schemas}
                column = FEATURE_SCHEMAS.c.id
                there = {*connection.scalars(sa.select(column).where(column.in_(by_id)))}
                new = [
                    {"id": key, "version": one.version, "names": dump(one.names)}
                    for key, one in by_id.items()
                    if key not in there
                ]
                if new:
                    connection.execute(sa.insert(FEATURE_SCHEMAS), new)
                rows = [observation_to_row(one) for one in batch]
                total += _add_rows(connection, OBSERVATIONS, rows, replace=replace)
            check(total)
        return total

    def add_failures(self, failures: Iterable[FailureRecord]) -> AddedRows:
        """Add failures in one transaction; the newest of equal ones stays."""
        with self.write() as connection:
            rows = [record_to_row(one, FAILURE_COLUMNS) for one in failures]
            return _add_rows(connection, FAILURES, rows, replace=True)

    def remove(self, keys: Sequence[str]) -> int:
        """Remove observations and failures by key; return how many were there."""
        with self.write() as connection:
            return sum(
                connection.execute(sa.delete(one).where(one.c.key.in_(keys))).rowcount
                for one in (OBSERVATIONS, FAILURES)
            )

    def remove_selected(self, wanted: Selection) -> int:
        """Remove the observations of a selection in one transaction; return how many there were."""
        conditions = list_conditions(wanted, OBSERVATIONS)
        if not conditions:
            msg = f"{self.where}: every observation would be removed; say which are meant"
            raise InputError(msg)
        with self.write() as connection:
            return connection.execute(sa.delete(OBSERVATIONS).where(*conditions)).rowcount

    def clear_failures(self, launch_key: str) -> int:
        """Remove the failures of a launch that has worked since; return how many there were."""
        wanted = sa.delete(FAILURES).where(FAILURES.c.launch_key == launch_key)
        with self.write() as connection:
            return connection.execute(wanted).rowcount

    def get(self, key: str) -> Observation:
        """Return the observation of a key or of its unique beginning."""
        column = OBSERVATIONS.c.key
        is_whole = len(key) == 64  # found by the index; a beginning is looked for
        begins = column == key if is_whole else sa.func.substr(column, 1, len(key)) == key
        found = self.select(sa.select(OBSERVATIONS).where(begins).limit(2))
        if len(found) != 1:
            raise InputError(
                f"{self.where}: {'several keys begin' if found else 'no key begins'} with {key!r}; "
                "`kernelcast data ls` shows the keys"
            )
        return row_to_observation(dict(found[0]._mapping), self.schemas())

    def find(self, wanted: Selection = EVERYTHING) -> Iterator[Observation]:
        """Read observations, in the order of their keys, a batch in memory at a time."""
        return (row_to_observation(row, schemas) for row, schemas in self.read_whole_rows(wanted))

    def read_whole_rows(
        self, wanted: Selection = EVERYTHING
    ) -> Iterator[tuple[dict[str, Any], Mapping[str, FeatureSchema]]]:
        """Read all columns of rows as `find` does, each with the schemas that there are by then."""
        schemas = self.schemas()
        for rows in self.read_rows(wanted, ordered=True):
            for one in rows:
                row = dict(one._mapping)
                if row["schema_id"] is not None and row["schema_id"] not in schemas:
                    schemas = self.schemas()  # another process has added the row meanwhile
                yield row, schemas

    def failures(self, wanted: Selection = EVERYTHING) -> list[FailureRecord]:
        query = sa.select(FAILURES).where(*list_conditions(wanted, FAILURES))
        return [row_to_failure(dict(one._mapping)) for one in self.select(query.order_by("key"))]

    def count(self, wanted: Selection = EVERYTHING) -> int:
        query = sa.select(sa.func.count()).select_from(OBSERVATIONS)
        return int(self.select(query.where(*list_conditions(wanted, OBSERVATIONS)))[0][0])

    def schemas(self) -> dict[str, FeatureSchema]:
        return {
            row.id: FeatureSchema(names=tuple(json.loads(row.names)), version=row.version)
            for row in self.select(sa.select(FEATURE_SCHEMAS))
        }

    def select(self, query: sa.Select[Any]) -> list[sa.Row[Any]]:
        """Run a query on the store's tables; for summaries inside this room."""
        with self.read() as connection:
            return [*connection.execute(query)]

    def find_damage(self) -> list[str]:
        """Have SQLite look at all of its file, and PostgreSQL at the index of each primary key."""
        with self.read() as connection:
            if connection.dialect.name != "sqlite":
                names = sorted(sa.inspect(connection).get_table_names())
                ours = (
                    one for one in names if one in METADATA.tables or one.startswith("service_")
                )
                return [*filter(None, (_count_twice(connection, one) for one in ours))]
            try:
                rows = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars().all()
            except sa.exc.DBAPIError as error:
                if read_sqlite_code(error.orig) not in _SQLITE_DAMAGED:
                    raise
                return [str(error.orig)]
            return [str(one) for one in rows if one != "ok"]

    def read_rows(
        self,
        wanted: Selection = EVERYTHING,
        *,
        columns: Sequence[str] | None = None,
        ordered: bool = False,
        batch_rows: int = 1000,
    ) -> Iterator[Sequence[sa.Row[Any]]]:
        names = OBSERVATIONS.c.keys() if columns is None else columns
        query = sa.select(*(OBSERVATIONS.c[name] for name in names))
        query = query.where(*list_conditions(wanted, OBSERVATIONS))
        if ordered:
            query = query.order_by(OBSERVATIONS.c.key)
        with self.read() as connection:
            result = connection.execution_options(stream_results=True).execute(query)
            yield from result.partitions(batch_rows)

    def read_newest(
        self, wanted: Selection, columns: Sequence[str], *, most: int
    ) -> list[sa.Row[Any]]:
        """Read some columns of the rows that were measured last, the oldest of them first."""
        return self.select(query_newest(wanted, columns, most=most))[::-1]

    def read_launches(
        self, wanted: Selection, columns: Sequence[str], *, most: int
    ) -> list[sa.Row[Any]]:
        """Read some columns of each launch's newest rows and newest sampled one, oldest first."""
        # Of so many rows, a page of what was observed a million times is read in a moment.
        needed = {*columns, "launch_key", "key", "measured_at_us", "linear_s"}
        newest = query_newest(wanted, sorted(needed), most=20_000).subquery()
        held = newest.c
        order = (held.measured_at_us.desc().nulls_last(), held.key.desc())
        place = sa.func.row_number().over(partition_by=held.launch_key, order_by=order)
        sampled = sa.func.count(held.linear_s).over(
            partition_by=held.launch_key, order_by=order, rows=(None, 0)
        )
        rows = (
            sa.select(*(held[name] for name in columns), place.label("place"),
                      sa.case((held.linear_s.is_not(None), sampled)).label("sampled"))
            .subquery()
        )  # fmt: skip
        chosen = sa.or_(rows.c.place <= most, rows.c.sampled == 1)
        return self.select(sa.select(rows).where(chosen).order_by(rows.c.place.desc()))


def query_newest(wanted: Selection, columns: Sequence[str], *, most: int) -> sa.Select[Any]:
    """Make the query of `Store.read_newest`, newest first."""
    held = OBSERVATIONS.c
    return (
        sa.select(*(held[name] for name in columns))
        .where(*list_conditions(wanted, OBSERVATIONS))
        .order_by(held.measured_at_us.desc().nulls_last(), held.key.desc())
        .limit(most)
    )


def _count_twice(connection: sa.Connection, table: str) -> str:
    """Count rows without any index, and by the primary key's index alone."""
    column = sa.inspect(connection).get_pk_constraint(table)["constrained_columns"][0]
    key: sa.ColumnClause[object] = sa.column(column)
    keys = sa.select(key).select_from(sa.table(table)).order_by(key)
    count = sa.select(sa.func.count()).select_from(keys.subquery())
    counts = []
    for ways_off in (("indexscan", "indexonlyscan", "bitmapscan"), ("seqscan", "sort")):
        with connection.begin_nested() as step:
            for way in ways_off:
                connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")
            counts.append(connection.scalar(count))
            step.rollback()  # the settings go with it
    if counts[0] == counts[1]:
        return ""
    return f"{table}: has {counts[0]} rows, the index of its primary key {counts[1]}"


def open_store(place: str | Path, *, must_exist: bool = False) -> Store:
    """Open a store of observations; make it where there is none."""
    url, where = locate(place)
    if url.get_backend_name() == "sqlite":
        path = Path(where)
        if must_exist and not path.is_file():
            raise InputError(
                f"{path}: there is no store of observations; `kernelcast collect` or `kernelcast "
                "data import` makes one, or name another"
            )
        try:
            make_private_folder(path.parent)
        except OSError as error:
            msg = f"{path}: the folder cannot be made: {error.strerror or error}"
            raise StoreError(msg) from error
        if not path.exists():
            with suppress(OSError):  # SQLite says what is wrong
                make_private_file(path)
        # SQLite gives its log and its index the rights of the database, when it makes them.
        for suffix in ("", "-wal", "-shm"):
            close_to_others(path.with_name(path.name + suffix))
    store = Store(url, where)
    try:
        _migrate(store)
    except BaseException:
        store.close()
        raise
    return store


# What was observed 100,000 times is asked for by its newest rows: an index has them in this order.
# SQLite takes rows without a time as the oldest by itself, PostgreSQL as the newest.
_INDEXES = """
DROP INDEX IF EXISTS ix_observations_kernel_digest;
DROP INDEX IF EXISTS ix_observations_launch_key;
DROP INDEX IF EXISTS ix_observations_launch_times;
DROP INDEX IF EXISTS ix_observations_launch_samples;
CREATE INDEX IF NOT EXISTS ix_observations_newest
    ON observations (kernel_digest, device_id, {moment});
CREATE INDEX IF NOT EXISTS ix_observations_newest_of_launch
    ON observations (launch_key, {moment})
"""
# Until version 0004 triggers kept a table of launches.
_OBSOLETE = {
    "sqlite": "".join(
        f"DROP TRIGGER IF EXISTS observations_{one};"
        for one in ("insert_new", "update_old", "update_new", "delete_old")
    ),
    "postgresql": "DROP FUNCTION IF EXISTS mark_launches CASCADE;",
}


def _migrate(store: Store) -> None:
    """Make the tables, or bring older ones up to date, in one transaction."""
    with store.read() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        tables = sa.inspect(connection).get_table_names()
    path = Path(str(store.url.database))
    if VERSION_TABLE not in tables:
        if "observations" in tables or (tables and is_sqlite):
            raise StoreError(
                f"{store.where}: is a database, but no store of observations; name another "
                f"{'file' if is_sqlite else 'database'}"
            )
        if is_sqlite:
            # Let readers go on while another connection writes: the file remembers it.
            deadline_s, is_done = time.monotonic() + 30.0, False
            with speak_plainly(store.where), closing(sqlite3.connect(path)) as made:
                while not is_done:
                    try:
                        # A row with 200 features has 3 kB: one to a page of SQLite's usual 4 kB
                        # would waste a quarter.
                        made.execute("PRAGMA page_size=16384")
                        made.execute("PRAGMA journal_mode=WAL")
                        is_done = True
                    except sqlite3.OperationalError as error:
                        # SQLite does not wait here while another process does the same.
                        is_busy = error.sqlite_errorcode == sqlite3.SQLITE_BUSY
                        if not is_busy or time.monotonic() > deadline_s:
                            raise
                        time.sleep(0.01)

    def update(connection: sa.Connection, found: str | None) -> None:
        backup = path.with_name(f"{path.name}.version-{found}.backup")
        if is_sqlite and found is not None:  # a server has backups of its own
            make_private_file(backup)
            with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(backup)) as new:
                old.backup(new)
        METADATA.create_all(connection)
        for table in METADATA.sorted_tables:
            have = {one["name"] for one in sa.inspect(connection).get_columns(table.name)}
            for column in table.columns:
                if column.name not in have:
                    made = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
                    connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {made}")
        moment = "measured_at_us" if is_sqlite else "measured_at_us DESC NULLS LAST"
        obsolete = f"{_OBSOLETE[connection.dialect.name]} DROP TABLE IF EXISTS launches"
        for statement in f"{obsolete};{_INDEXES.format(moment=moment)}".split(";"):
            connection.exec_driver_sql(statement)
        if is_sqlite and found is not None:
            _LOGGER.warning(
                "%s: is brought up to date; the older store is kept as %s", store.where, backup
            )

    # "kcst" as a number: any constant will do that no other program takes.
    bring_up_to_date(store, VERSION_TABLE, HEAD, 0x6B637374, update, "the store is")
