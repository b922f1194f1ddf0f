import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.cli.compare import run as compare_run
from kernelcast.records.training_table import TrainingTable
from kernelcast.reports import drawing
from support.synthetic_rows import make_rows

TABLE = make_rows(kernels=6, sizes=3, devices=2)
ALL = ("--shortest", "0", "--least-work-groups", "0", "--resamples", "200", "--jobs", "1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, object]]:
    """Hand out synthetic rows instead of a store's, and note what was asked for."""
    seen: list[tuple[object, object]] = []

    def load(sources: object, *, devices: object, tell: object) -> TrainingTable:
        assert callable(tell)
        seen.append((sources, devices))
        return TABLE

    monkeypatch.setattr(compare_run, "load_training_table", load)
    return seen


def run(*words: str | Path) -> Result:
    """Run `kernelcast compare`."""
    return CliRunner().invoke(app, ["compare", *map(str, words)])


@pytest.mark.usefixtures("asked")
def test_shows_both_models_and_their_difference() -> None:
    """Prints errors, difference with interval, noise, wins, classes and reasons per device."""
    result = run("linear", "ridge", *ALL)
    assert result.exit_code == 0, result.stderr
    for device in ("device-0", "device-1"):
        assert f"{device}: 18 rows of 6 kernels" in result.stdout
    number = r"[+-]\d+\.\d\d"
    assert len(re.findall(
        rf"ridge less linear: {number} points of mean error, 95 % interval {number} to {number} "
        r"\(BCa bootstrap over kernels\)", result.stdout,
    )) == 2  # fmt: skip
    for told in (
        r"of 6 kernels: linear better on \d", r"noise floor: \d", "0 - 5 %", "over 10 %",
        "where ridge errs most, and why",
    ):  # fmt: skip
        assert len(re.findall(told, result.stdout)) == 2
    assert result.stdout.count("groups, in points: ") == 6  # three kernels on each device


def test_a_model_without_answers_is_named_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without analytic estimates nothing is compared: the reason on stderr, status 1."""
    features = TABLE.features.copy()
    features[:, TABLE.schema.names.index("analytic.estimate_s")] = np.nan
    table = TABLE.with_features(TABLE.schema, features)
    monkeypatch.setattr(compare_run, "load_training_table", lambda _, **__: table)
    result = run("linear", "analytic", *ALL)
    assert result.exit_code == 1
    assert "there is no row that both models answered" in result.stdout
    assert "analytic on device-0" in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("linear", "oracle"), "no model is called 'oracle'"),
        (("linear", "linear"), "cannot be compared with itself"),
        (("linear",), "Missing argument"),
        (("linear", "ridge", "--split", "device"), "'device' is not one of"),
        (("linear", "ridge", "--resamples", "1"), "--resamples"),
        (("linear", "ridge", "--shortest", "1e9"), "kernels"),
    ],
)
@pytest.mark.usefixtures("asked")
def test_wrong_words_are_told(words: tuple[str, ...], told: str) -> None:
    """Ends with status 2 and one clear line."""
    result = run(*words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("asked")
def test_what_cannot_be_written_is_told_before_fits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder that is a file's, and a page without matplotlib, are refused at once."""

    def fit(*_: object, **__: object) -> None:
        pytest.fail("fits have begun")

    monkeypatch.setattr(compare_run, "compare_models", fit)
    (tmp_path / "file").touch()
    result = run("linear", "ridge", "--out", tmp_path / "file" / "out")
    assert (result.exit_code, "cannot be made" in result.stderr) == (2, True)
    monkeypatch.setattr(drawing.importlib.util, "find_spec", lambda _: None)
    result = run("linear", "ridge", "--out", tmp_path / "out")
    assert (result.exit_code, "kernelcast[plot]" in result.stderr) == (2, True)
