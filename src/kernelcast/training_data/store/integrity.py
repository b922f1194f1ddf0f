"""Has a database look for damage in itself: in its pages, tables and indexes."""

import sqlite3
from collections.abc import Iterator

import sqlalchemy as sa

from kernelcast.training_data.store.errors import read_sqlite_code

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_PG_NOT_ALLOWED = "42501"
_PG_DAMAGED = frozenset({"XX001", "XX002"})
_SQLITE_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_MOST = 20
_OUR_TABLES = ("observations", "failures", "feature_schemas")
_OUR_PREFIX = "service_"


def find_damage(connection: sa.Connection) -> list[str]:
    """Look for damage; reads all of the database."""
    if connection.dialect.name == "sqlite":
        return _find_sqlite_damage(connection)
    found: list[str] = []
    query = sa.text("SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'")
    may_amcheck = bool(connection.scalar(query))
    for table in _list_our_tables(connection):
        said = _amcheck(connection, table) if may_amcheck else None
        found += _count_twice(connection, table) if said is None else said
    return found[:_MOST]


def _find_sqlite_damage(connection: sa.Connection) -> list[str]:
    try:
        rows = connection.exec_driver_sql(f"PRAGMA integrity_check({_MOST})").scalars().all()
    except sa.exc.DBAPIError as error:
        if read_sqlite_code(error.orig) not in _SQLITE_DAMAGED:
            raise
        return [str(error.orig)]
    return [str(one) for one in rows if one != "ok"]


def _list_our_tables(connection: sa.Connection) -> list[str]:
    names = sa.inspect(connection).get_table_names()
    return sorted(one for one in names if one in _OUR_TABLES or one.startswith(_OUR_PREFIX))


def _amcheck(connection: sa.Connection, table: str) -> list[str] | None:
    """Check a table and its indexes; None where this user may not."""
    indexes = connection.scalars(
        sa.text(
            "SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c "
            "ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
            "WHERE i.indrelid = CAST(:name AS regclass) AND a.amname = 'btree'"
        ),
        {"name": table},
    ).all()
    checks = [("SELECT msg FROM verify_heapam(CAST(:name AS regclass))", table)] + [
        ("SELECT bt_index_check(CAST(:name AS regclass), true)", one) for one in indexes
    ]
    found: list[str] = []
    for query, name in checks:
        said = _try(connection, query, name)
        if said is None:
            return None
        found += said
    return found


def _try(connection: sa.Connection, query: str, name: str) -> list[str] | None:
    """Run one check; it reports damage by its rows or by an error."""
    try:
        with connection.begin_nested():
            rows = connection.scalars(sa.text(query), {"name": name}).all()
    except sa.exc.DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None)
        if state == _PG_NOT_ALLOWED:
            return None
        if state not in _PG_DAMAGED:
            raise
        return [f"{name}: {' '.join(str(error.orig).split())}"]
    return [f"{name}: {one}" for one in rows if one]


def _count_twice(connection: sa.Connection, table: str) -> Iterator[str]:
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
    if counts[0] != counts[1]:
        yield f"{table}: has {counts[0]} rows, the index of its primary key {counts[1]}"
