"""`kernelcast simulate`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.models.validation.report import (
    ModelRows,
    ValidatedRows,
    ValidationReport,
    report_to_json,
)

SMALL = ("--devices", "6", "--tasks", "80", "--repeats", "2", "--models", "3")


def run(*words: str | Path) -> Result:
    """Run `kernelcast simulate`."""
    return CliRunner().invoke(app, ["simulate", *map(str, words)])


@pytest.fixture
def validation(tmp_path: Path) -> Path:
    """Write the report of a validation of two models."""
    answers = {"linear": (1.5, None), "svr": (1.1, 1.8)}
    models = tuple(
        ModelRows(model=name, seconds=seconds, low=seconds, high=seconds, in_domain=(True, True))
        for name, seconds in answers.items()
    )
    report = ValidationReport(
        split="kernel", coverage=0.9, schema_id="", data_digest="", versions={}, scores=(),
        rankings=(), refused={},
        rows=ValidatedRows(
            keys=("a", "b"), groups=("a", "b"), kernels=("a", "b"), devices=("d", "d"),
            measured_s=(1.0, 2.0), models=models,
        ),
    )  # fmt: skip
    path = tmp_path / "validation.json"
    path.write_text(report_to_json(report))
    return path


def test_json_has_every_way_of_knowing() -> None:
    """Equal for equal seeds; zero error is perfect knowledge."""
    result = run(*SMALL, "--errors", "0,0.5", "--shape", "cholesky", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [one["knowledge"] for one in found] == [
        "perfect", "estimates", "estimates", "history", "history", "none",
    ]  # fmt: skip
    assert found[1]["makespan_ratios"] == [1.0, 1.0]
    assert [one["mean_error"] for one in found[1:3]] == [0.0, 0.5]
    assert run(*SMALL, "--errors", "0,0.5", "--shape", "cholesky", "--json").stdout == result.stdout
    other = run(*SMALL, "--errors", "0,0.5", "--shape", "cholesky", "--json", "--seed", "7")
    assert other.stdout != result.stdout


def test_errors_of_a_validation(validation: Path) -> None:
    """Each model's ratios of predicted to measured time, or those of one model."""
    found = json.loads(run(*SMALL, "--errors", "0", "--validation", validation, "--shape",
                           "independent", "--json").stdout)  # fmt: skip
    errors = {one["label"]: one["mean_error"] for one in found if one["from_validation"]}
    assert errors == {"estimates, linear": pytest.approx(0.5), "estimates, svr": pytest.approx(0.1)}
    words = ("--validation", validation, "--shape", "independent")
    one = run(*SMALL, *words, "--model", "svr")
    assert "estimates, svr" in one.stdout
    assert "estimates, linear" not in one.stdout
    refused = run(*SMALL, *words, "--model", "gp")
    assert refused.exit_code == 2
    assert "linear, svr" in refused.stderr


def test_the_plot_is_written(tmp_path: Path, validation: Path) -> None:
    """One panel per shape."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "simulation.svg"
    result = run(*SMALL, "--errors", "0,0.2", "--validation", validation, "--plot", path)
    assert result.exit_code == 0, result.stderr
    text = path.read_text()
    assert "</svg>" in text
    assert run(*SMALL, "--plot", tmp_path / "none" / "x.svg").exit_code == 2


@pytest.mark.parametrize(
    "words",
    [("--errors", "a"), ("--errors", "-1"), ("--devices", "0"), ("--shape", "ring"),
     ("--model", "svr"), ("--validation", "none.json")],
)  # fmt: skip
def test_bad_input_is_told(words: tuple[str, str]) -> None:
    """Exit status 2 and no traceback."""
    result = run(*SMALL, *words)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
