import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernelcast
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.training_data.parquet import (
    FORMAT_VERSION,
    METADATA_KEY,
    ObservationFileError,
    export_parquet,
    is_observation_file,
    read_parquet,
)
from kernelcast.training_data.store import AddedRows, Store, open_store
from support.observations import SCHEMA, make_observation, observations

SHIPPED = Path(kernelcast.__file__).parent / "training_data" / "measured"


@pytest.fixture
def other(tmp_path: Path) -> Store:
    """Open a store with one row."""
    store = open_store(tmp_path / "other.sqlite")
    store.add(make_observation(100))
    return store


def set_column(name: str, values: list[Any]) -> Callable[[pa.Table], pa.Table]:
    """Give what replaces a column."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        kind = table.schema.field(name).type if values else pa.string()
        return table.set_column(place, name, pa.array(values or [""] * 20, type=kind))

    return change


def set_metadata(**changes: object) -> Callable[[pa.Table], pa.Table]:
    """Give what changes the file's metadata."""

    def change(table: pa.Table) -> pa.Table:
        content = json.loads(table.schema.metadata[METADATA_KEY]) | changes
        return table.replace_schema_metadata({METADATA_KEY: json.dumps(content).encode()})

    return change


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(rows=st.lists(observations(), max_size=5))
def test_anything_survives(tmp_path: Path, rows: list[Any]) -> None:
    """Exports and imports whatever records allow, also of two schemas; the second import changes
    nothing."""
    path = tmp_path / "any.parquet"
    longer = FeatureSchema(names=(*SCHEMA.names, "static.loops_count"), version=1)
    with open_store(tmp_path / "one.sqlite") as one, open_store(tmp_path / "two.sqlite") as two:
        for store in (one, two):
            store.remove([row.key for row in store.find()])
        one.add_many([*rows, make_observation(50, schema=longer)])
        count = export_parquet(one, path)
        assert two.add_many(read_parquet(path)) == AddedRows(added=count)
        assert two.add_many(read_parquet(path)) == AddedRows(known=count)
        assert list(two.find()) == list(one.find())


def test_pandas_reads_columns_that_mean_something(store: Store, tmp_path: Path) -> None:
    """Sizes, runs, samples, flags and features are values, not texts or bytes to take apart."""
    path = tmp_path / "rows.parquet"
    export_parquet(store, path)
    frame = pd.read_parquet(path).set_index("key")
    for one in store.find():
        row = frame.loc[one.key]
        assert one.launch.ndrange is not None
        assert one.features is not None
        assert tuple(row["global_size"]) == one.launch.ndrange.global_size
        assert tuple(row["durations_s"]) == one.runs.durations_s
        assert row["seconds"] == one.seconds
        launches = row["samples"][0]["launches"]
        assert [launch["duration_s"] for launch in launches] == [
            launch.duration_s for launch in one.samples[0].launches
        ]
        assert dict(row["versions"]) == one.versions
        assert row["measured_at"] == one.measured_at
        assert {name: row[name] for name in SCHEMA.names} == one.features.as_dict()
    assert not any(isinstance(value, bytes) for value in frame.iloc[0])


def test_files_of_the_first_version_stay_readable(tmp_path: Path) -> None:
    """A shipped file of version 1 holds the observations that it gives when exported anew."""
    old, new = SHIPPED / "rusticl-llvmpipe-aead.parquet", tmp_path / "new.parquet"
    assert json.loads(pq.read_schema(old).metadata[METADATA_KEY])["format"] == 1
    with open_store(tmp_path / "rows.sqlite") as store:
        store.add_many(read_parquet(old))
        export_parquet(store, new)
    assert json.loads(pq.read_schema(new).metadata[METADATA_KEY])["format"] == FORMAT_VERSION
    assert [*read_parquet(new)] == sorted(read_parquet(old), key=lambda one: one.key)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_metadata(format=99), "format 99.*update kernelcast"),
        (set_metadata(format="x"), "metadata are damaged"),
        (set_metadata(feature_schemas={"v1-000000000000": {"version": 1, "names": []}}),
         "metadata are damaged .*feature schema"),
        (lambda table: table.replace_schema_metadata({}), "none of observations"),
        (lambda table: table.drop_columns(["seconds"]), "column seconds is not there"),
        (lambda table: table.drop_columns([SCHEMA.names[1]]), "not there"),
        (set_column("seconds", []), "column seconds is string, expected double"),
        (set_column("seconds", [1.0] * 19 + [-1.0]), "row 20: .* took -1.0 s"),
        (set_column("seconds", [None] * 20), "row 1: "),
        (set_column("samples", [[]] * 4 + [[{"multiple": 1, "launches": []}]] + [[]] * 15),
         "row 5: "),
        (set_column("parameters", ["[1]"] * 20), "row 1: expected a JSON object"),
        (set_column("origin", ["guessed"] * 20), "row 1: 'guessed' is not a valid Origin"),
        (set_column("local_size", [[2**40]] * 20), "row 1: .*exceeds global size"),
        (set_column("flags", [["odd"]] * 20), "row 1: 'odd' is not a valid ObservationFlag"),
        (set_column("driver", ["2.0"] * 20), "row 1: its key is"),
        (set_column("schema_id", ["v1-000000000000"] * 20), "row 1: .*is not in the file"),
    ],
)  # fmt: skip
def test_a_malformed_file_leaves_the_store_as_it_was(
    store: Store, other: Store, tmp_path: Path,
    change: Callable[[pa.Table], pa.Table], message: str,
) -> None:  # fmt: skip
    """Says what is wrong and in which row, and keeps nothing of the file."""
    path = tmp_path / "rows.parquet"
    export_parquet(store, path)
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(ObservationFileError, match=message):
        other.add_many(read_parquet(path))
    assert other.count() == 1


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_is_cut_off(store: Store, other: Store, tmp_path: Path, share: float) -> None:
    """Refuses a file whose end is missing."""
    path = tmp_path / "rows.parquet"
    export_parquet(store, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ObservationFileError, match="is it complete"):
        other.add_many(read_parquet(path))
    assert other.count() == 1
    assert not is_observation_file(path)


def test_damaged_bytes_never_end_in_anything_else(
    store: Store, other: Store, tmp_path: Path
) -> None:
    """Gives our error, or the rows as they were, wherever a byte is wrong."""
    path = tmp_path / "rows.parquet"
    export_parquet(store, path)
    content = bytearray(path.read_bytes())
    refused = 0
    for place in range(4, len(content), len(content) // 60):
        damaged = content.copy()
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            other.add_many(read_parquet(path))
        except ObservationFileError:
            refused += 1
    assert refused > 30
    kept = {one.key: one for one in (*store.find(), make_observation(100))}
    assert all(kept[one.key] == one for one in other.find())
