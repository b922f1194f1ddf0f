import re
from functools import partial
from pathlib import Path

import pytest

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
    monkeypatch.setattr(table, "load_training_table", lambda *_, **__: TABLE)


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


def test_a_page_without_matplotlib_is_refused_before_fits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the extra that brings it."""
    monkeypatch.setattr(comparing, "compare_table", lambda *_, **__: pytest.fail("fits have begun"))
    monkeypatch.setattr(drawing.importlib.util, "find_spec", lambda _: None)
    result = run("linear", "ridge", "--out", tmp_path / "out")
    assert (result.exit_code, "kernelcast[plot]" in result.stderr) == (2, True)
