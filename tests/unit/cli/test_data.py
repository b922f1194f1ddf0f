import json
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from kernelcast.launches.data_store import STORE_VARIABLE
from kernelcast.training_data.store import open_store
from kernelcast.training_data.store.schema import OBSERVATIONS
from support.commands import run_command
from support.observations import lose_index_entries, make_failure, make_observation

run = partial(run_command, "data")
ROWS = 30


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv(STORE_VARIABLE, str(path))
    return path


@pytest.fixture
def filled(place: Path) -> Path:
    with open_store(place) as store:
        store.add_many(map(make_observation, range(ROWS)))
        store.add_failures([make_failure(3)])
    return place


def test_the_description_beside_results_is_read(tmp_path: Path) -> None:
    """Imports a tuner's results with the T1 file beside them; Parquet gets no other name."""
    entry = {"configuration": {"x": 16}, "invalidity": "correct", "times": {"runtimes": [2.0]}}
    problem = {"General": {"TimeUnit": "ms"}, "KernelSpecification": {"Device": {"Name": "A100"}}}
    (tmp_path / "own.json").write_text(json.dumps({"results": [entry]}), encoding="utf-8")
    (tmp_path / "own.t1.json").write_text(json.dumps(problem), encoding="utf-8")
    assert run("import", tmp_path / "own.json").exit_code == 0
    (row,) = json.loads(run("ls", "--rows", "--json").stdout)
    assert row["seconds"] == 2e-3
    refused = run("export", tmp_path / "rows.csv")
    assert refused.exit_code == 2
    assert "call it rows.parquet" in refused.stderr


def test_check_finds_and_removes(filled: Path) -> None:
    """Ends with status 1 while there is something wrong, and says what to do."""
    assert "every row is sound" in run("check").stdout
    with open_store(filled) as store, store.write() as connection:
        bad = OBSERVATIONS.c.key == make_observation(4).key
        connection.execute(sa.update(OBSERVATIONS).where(bad).values(seconds=-1.0))
    result = run("check")
    assert result.exit_code == 1
    assert "impossible" in result.stdout
    assert "kernelcast data check --remove" in result.stdout
    (found,) = json.loads(run("check", "--json").stdout)
    assert found["key"] == make_observation(4).key
    removed = run("check", "--remove")
    assert removed.exit_code == 0
    assert "1 rows removed" in removed.stderr
    assert run("check").exit_code == 0


def test_check_reports_a_damaged_database(filled: Path) -> None:
    """Ends with status 1 and removes nothing, whatever is asked for."""
    lose_index_entries(filled)
    for words in ([], ["--remove"]):
        result = run("check", *words)
        assert result.exit_code == 1
        assert "ix_observations_kernel" in result.stdout
        assert "sound" not in result.stdout
        assert "removed" not in result.stderr
    assert {one["kind"] for one in json.loads(run("check", "--json").stdout)} == {"damaged"}
