import re
from functools import partial
from pathlib import Path

import pytest

from kernelcast.records.training_table import TrainingTable
from kernelcast.reports import drawing
from kernelcast.training import comparing, table
from support.commands import run_command
from support.synthetic_rows import make_rows

run = partial(run_command, "compare")
TABLE = make_rows(kernels=28, sizes=2, devices=2)
ALL = ("--shortest", "0", "--least-work-groups", "0", "--resamples", "200", "--jobs", "1")


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand out synthetic rows instead of a store's."""

    def load(_: object, **__: object) -> TrainingTable:
        return TABLE

    monkeypatch.setattr(table, "load_training_table", load)


def test_shows_all_methods_and_their_pairs(tmp_path: Path) -> None:
    """Errors, pairs, classes, rules and reasons in the terminal; figures too on the page."""
    result = run("linear", "ridge", "history", *ALL, "--split", "kernel", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    for told in (
        "all devices", "linear +ridge", "ridge +history", "corrected p", "By size",
        "When linear is nearer, when ridge", "On families left out", "Where ridge errs most",
        "history answers launches that were measured before",
    ):  # fmt: skip
        assert re.search(told, result.stdout), told
    page = (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "Ratios of errors" in page


def test_what_cannot_be_written_is_told_before_fits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder that is a file's, and a page without matplotlib, are refused at once."""

    def fit(*_: object, **__: object) -> None:
        pytest.fail("fits have begun")

    monkeypatch.setattr(comparing, "compare_table", fit)
    (tmp_path / "file").touch()
    result = run("linear", "ridge", "--out", tmp_path / "file" / "out")
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)
    monkeypatch.setattr(drawing.importlib.util, "find_spec", lambda _: None)
    result = run("linear", "ridge", "--out", tmp_path / "out")
    assert (result.exit_code, "kernelcast[plot]" in result.stderr) == (2, True)
