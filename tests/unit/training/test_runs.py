"""Records of trainings and validations."""

from pathlib import Path

import pytest

from kernelcast.models.time_models import make_model
from kernelcast.models.validation.report import validate
from kernelcast.records.errors import InputError
from kernelcast.training.runs import VARIABLE, compare_runs, find_run, is_run, list_runs, record_run
from support.synthetic_rows import make_rows

TABLE = make_rows(kernels=4, sizes=2)
REPORT = validate(TABLE, [make_model("linear")], TABLE.kernels)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder of runs."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "runs"))
    return tmp_path / "runs"


def record(digest: str, started_s: float = 10.0) -> str:
    """Record a validation; give its id."""
    settings = {"data_digest": digest, "split": "kernel"}
    return record_run("validate", "linear", settings, [REPORT], started_s=started_s)


def test_runs_come_back_the_latest_first() -> None:
    """Settings, scores and environment are what was recorded."""
    assert list_runs() == []
    record("a", 10.0)
    newest = record("b", 20.0)
    latest, _ = list_runs()
    assert latest == find_run(newest[:8])
    assert latest.settings["data_digest"] == "b"
    assert REPORT.scores[0].errors is not None
    assert latest.scores["linear.mean_error.device-0"] == REPORT.scores[0].errors["mean"]
    assert {"scikit-learn", "python", "processors"} <= latest.environment.keys()


def test_two_runs_are_compared() -> None:
    """What differs is named, and all scores stand beside each other."""
    first, second = (find_run(record(one)) for one in ("a", "b"))
    rows = {name: told for name, *told in compare_runs(first, second)}
    assert rows["data_digest"] == ["a", "b"]
    assert "split" not in rows
    assert rows["linear.coverage.device-0"][0] == rows["linear.coverage.device-0"][1] != ""
    with pytest.raises(InputError, match="cannot be compared with itself"):
        compare_runs(first, first)


def test_what_is_no_run_is_refused(folder: Path) -> None:
    """Unknown ids, short ones and damaged folders say what to do."""
    known = record("a")
    assert is_run(known)
    assert not is_run("linear")
    for beginning in ("ffffffffff", known[:3]):
        with pytest.raises(InputError, match="train --list"):
            find_run(beginning)
    (folder / "2" / known / "meta.yaml").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="no record of a run"):
        list_runs()


def test_the_layout_is_mlflows(folder: Path) -> None:
    """Its file store reads the folder, where it is installed."""
    known = record("a")
    store = pytest.importorskip("mlflow.store.tracking.file_store").FileStore(str(folder))
    run = store.get_run(known)
    assert run.data.params["data_digest"] == "a"
    assert run.data.metrics["linear.mean_error.device-0"] > 0
