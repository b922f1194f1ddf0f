import json
from dataclasses import replace
from pathlib import Path

import click
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.launches.data_store import STORE_VARIABLE, choose_store
from kernelcast.records.observation import ObservationFlag
from kernelcast.training_data.store import Selection, open_store
from kernelcast.training_data.store.tables import OBSERVATIONS
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


def test_every_command_is_there() -> None:
    """Offers each command with a line of help."""
    shown = run("--help").stdout
    group = app.get_command(click.Context(app), "data")
    assert isinstance(group, click.Group)
    for name in group.list_commands(click.Context(group)):
        assert f"  {name} " in shown
        assert run(name, "--help").exit_code == 0
    assert run("bogus").exit_code == 2


@pytest.mark.parametrize(
    "words", [["ls"], ["show", "00"], ["export", "rows.parquet"], ["check"], ["merge", "x.sqlite"]]
)
def test_no_store_is_an_error_and_none_is_made(words: list[str], place: Path) -> None:
    """Says that there is no store, whatever was asked for."""
    result = run(*words)
    assert result.exit_code == 2
    assert "there is no store of observations" in result.stderr
    assert not place.exists()


def test_the_store_is_in_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Uses the user's own file where none is named."""
    monkeypatch.delenv(STORE_VARIABLE)
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    assert choose_store() == tmp_path / "observations.sqlite"
    assert "observations.sqlite: there is no store" in run("ls").stderr


def test_ls_groups_observations(filled: Path) -> None:
    """Has a line per group with counts, times and noise."""
    by_device = run_json("ls")
    assert [one["group"] for one in by_device] == ["device-0", "device-1", "device-2"]
    assert [one["rows"] for one in by_device] == [10, 10, 10]
    assert [one["flagged"] for one in by_device] == [1, 0, 0]
    by_kernel = run_json("ls", "--by", "kernel", "--device", "device-1")
    assert [one["group"] for one in by_kernel][:2] == [
        "suite/application0/kernel0", "suite/application0/kernel1",
    ]  # fmt: skip
    (whole,) = run_json("ls", "--by", "suite")
    rows = sorted(make_observation(number).runs.noise or 0.0 for number in range(ROWS))
    assert whole["median_noise"] == rows[(ROWS - 1) // 2]
    assert whole["kernels"] == 7
    table = run("ls").stdout
    assert "device-2" in table
    assert "2026-01-01" in table


def test_ls_lists_rows_and_failures(filled: Path) -> None:
    """Names keys that `show` takes, and what went wrong."""
    rows = run_json("ls", "--rows", "--kernel", "kernel3")
    assert {one["kernel"] for one in rows} == {"suite/application1/kernel3"}
    assert str(rows[0]["key"])[:12] in run("ls", "--rows", "--kernel", "kernel3").stdout
    (failure,) = run_json("ls", "--failures")
    assert failure["kind"] == "KernelRunError"
    assert "crashed its driver" in run("ls", "--failures").stdout
    assert "nothing there" in run("ls", "--kernel", "unknown").stdout
    assert run_json("ls", "--rows", "--origin", "imported") == []


def test_show_has_everything(filled: Path) -> None:
    """Shows identity, times, samples and features of an observation."""
    one = make_observation(5)
    (found,) = run_json("show", one.key[:20])
    assert found["durations_s"] == list(one.runs.durations_s)
    assert found["features"] == one.features.as_dict() if one.features else None
    assert found["samples"][0]["work_groups"] == [4, 6]  # type: ignore[index]  # a list
    shown = run("show", one.key[:20]).stdout
    for text in (one.key, "kernel5", "static.work_items_count", "4 x 6", "governor=performance"):
        assert text in shown
    missing = run("show", "zz")
    assert missing.exit_code == 2
    assert "no key begins with 'zz'" in missing.stderr


def test_export_and_import_bring_rows_over(filled: Path, tmp_path: Path) -> None:
    """Writes a file, reads it into a new store, and changes nothing the second time."""
    file, other = tmp_path / "rows.parquet", tmp_path / "other.sqlite"
    assert "30 observations written" in run("export", file).stdout
    (first,) = run_json("import", file, "--store", other)
    (second,) = run_json("import", file, "--store", other)
    (third,) = run_json("import", file, "--store", other, "--replace")
    assert (first["added"], second["added"], second["known"]) == (ROWS, 0, ROWS)
    assert third["replaced"] == ROWS
    assert "0 added" in run("import", file, "--store", other).stdout


def test_a_file_that_cannot_be_used_leaves_the_store(filled: Path, tmp_path: Path) -> None:
    """Ends with status 2 and a reason."""
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 no more PAR1")
    for file, reason in ((bad, "no Parquet file"), (tmp_path / "none", "there is no such file")):
        result = run("import", file)
        assert result.exit_code == 2
        assert reason in result.stderr
    with open_store(filled) as store:
        assert store.count() == ROWS


def test_tuning_results_are_imported(tmp_path: Path, place: Path) -> None:
    """Takes a tuner's results with what only the caller knows, and tells valid from invalid."""
    results = tmp_path / "tuned.json"
    entry = {"configuration": {"x": 1}, "times": {"runtimes": [2.0]}, "correctness": 1,
             "invalidity": "correct"}  # fmt: skip
    failed = {**entry, "configuration": {"x": 2}, "invalidity": "timeout"}
    results.write_text(json.dumps({"results": [entry, failed]}), encoding="utf-8")
    assert run("import", results).exit_code == 2
    (found,) = run_json("import", results, "--measured-on", "A100", "--time-unit", "ms")
    assert (found["added"], found["failures"]) == (1, 1)
    with open_store(place) as store:
        assert next(store.find()).seconds == 0.002


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


def test_merge_adds_other_stores(filled: Path, tmp_path: Path) -> None:
    """Brings observations and failures of other stores over, and refuses itself."""
    other = tmp_path / "other.sqlite"
    with open_store(other) as store:
        store.add_many(map(make_observation, range(ROWS - 5, ROWS + 5)))
        store.add_failures([make_failure(9)])
    assert "5 added, 0 replaced, 5 known before" in run("merge", other).stdout
    (again,) = run_json("merge", other)
    assert (again["added"], again["known"]) == (0, 10)
    with open_store(filled) as store:
        assert store.count() == ROWS + 5
        assert len(store.failures()) == 2
    itself = run("merge", filled)
    assert itself.exit_code == 2
    assert "is the store to merge into" in itself.stderr


def test_rm_shows_what_would_go_and_asks(filled: Path) -> None:
    """Nothing goes without a yes, nor by `--dry-run`."""
    wanted = ["rm", "--kernel", "kernel1", "--device", "device-1"]
    shown = run(*wanted, "--dry-run")
    assert shown.exit_code == 0
    assert "observations would go" in shown.stdout
    refused = CliRunner().invoke(app, ["data", *wanted], input="n\n")
    assert refused.exit_code == 0
    with open_store(filled) as store:
        assert store.count() == ROWS
        count = store.count(Selection(kernels=("kernel1",), devices=("device-1",)))
    assert f"{count} observations" in shown.stdout
    assert run(*wanted, "--yes").exit_code == 0
    with open_store(filled) as store:
        assert store.count() == ROWS - count
        assert store.count(Selection(kernels=("kernel1",), devices=("device-1",))) == 0


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


@pytest.mark.parametrize(
    "words",
    [["--yes"], ["--json", "--kernel", "kernel1"], ["bogus", "--yes"], ["--from", "soon", "--yes"]],
)
def test_rm_refuses_what_is_not_clear(filled: Path, words: list[str]) -> None:
    """Everything, a question that nobody can answer, an unknown key, a moment that is none."""
    assert run("rm", *words).exit_code == 2
    with open_store(filled) as store:
        assert store.count() == ROWS
