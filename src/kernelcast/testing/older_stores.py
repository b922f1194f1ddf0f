"""Stores as earlier versions left them."""

from collections.abc import Sequence

import sqlalchemy as sa

from kernelcast.records.observation import Observation
from kernelcast.training_data.store.rows import observation_to_row
from kernelcast.training_data.store.writing import add_schemas, schema_id_of


def insert_as_then(engine: sa.Engine, rows: Sequence[Observation]) -> None:
    """Write rows as the version of a store's tables did, which may have known fewer columns."""
    table = sa.Table("observations", sa.MetaData(), autoload_with=engine)
    names = set(table.columns.keys())
    with engine.begin() as connection:
        add_schemas(connection, {one.features.schema for one in rows if one.features})
        for one in rows:
            row = observation_to_row(one, schema_id_of(one))
            connection.execute(sa.insert(table), {key: row[key] for key in names if key in row})
