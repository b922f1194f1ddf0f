import json
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.launches.data_store import STORE_VARIABLE
from kernelcast.records.observation import ObservationFlag
from kernelcast.training_data.store import open_store
from kernelcast.training_data.store.schema import OBSERVATIONS
from support.observations import lose_index_entries, make_failure, make_observation

ROWS = 30


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the store that commands use; another user's environment does not matter."""
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv(STORE_VARIABLE, str(path))
    return path


@pytest.fixture
def filled(place: Path) -> Path:
    """Put thirty observations and a failure into it."""
    with open_store(place) as store:
        flagged = replace(make_observation(0), flags=frozenset({ObservationFlag.OUTLIER}))
        store.add_many([flagged, *map(make_observation, range(1, ROWS))])
        store.add_failures([make_failure(3)])
    return place


def run(*words: str | Path) -> Result:
    """Run `kernelcast data`."""
    return CliRunner().invoke(app, ["data", *map(str, words)])


def run_json(*words: str | Path) -> list[dict[str, object]]:
    """Run a command with `--json`; give what it prints."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_check_finds_and_removes(filled: Path) -> None:
    """Ends with status 1 while there is something wrong, and says what to do."""
    assert "every row is sound" in run("check").stdout
    with open_store(filled) as store, store._write() as connection:
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


def test_rm_takes_keys_times_values_and_flags(filled: Path) -> None:
    """Each selects, and all together select what is in all of them."""
    with open_store(filled) as store:
        rows = sorted(store.find(), key=lambda one: one.seconds)
    limit = rows[9].seconds
    (found,) = [run_json("rm", rows[0].key[:12], "--dry-run")]
    assert [one["key"] for one in found["observations"]] == [rows[0].key]  # type: ignore[call-overload]
    fewer = run_json("rm", "--most", str(limit), "--from", "2020-01-01", "--dry-run")
    assert fewer["count"] == 10  # type: ignore[call-overload]
    assert run_json("rm", "--before", "2020-01-01", "--dry-run")["count"] == 0  # type: ignore[call-overload]
    gone = run_json("rm", "--flag", "outlier", "--yes")
    assert gone["removed"] == 1  # type: ignore[call-overload]
    with open_store(filled) as store:
        assert store.count() == ROWS - 1
