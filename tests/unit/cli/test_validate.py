import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.launches.data_store import STORE_VARIABLE
from kernelcast.models.validation import ValidationReport, report_from_json
from kernelcast.records.observation import Observation
from kernelcast.records.sampling_points import SamplingPointScore
from kernelcast.training_data.store import open_store
from support.observations import make_observation

KERNELS, ROWS = 5, 40
PAGE = "kernelcast.cli.validate.page.page"


def observe(number: int) -> Observation:
    """Make an observation on one of two devices, with the samples of an estimate and a pair."""
    one = make_observation(number, kernels=KERNELS, devices=2)
    (samples,) = one.samples
    usual = replace(samples, multiple=0)
    return replace(one, samples=(usual, samples))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fill the store that commands use."""
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "home"))
    monkeypatch.setenv(STORE_VARIABLE, str(path))
    with open_store(path) as store:
        store.add_many(map(observe, range(ROWS)))
    return path


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Stand in for the page, whose figures are tested elsewhere; give what it was called with."""
    written: list[tuple[int, int]] = []

    def write(
        report: ValidationReport,
        points: Sequence[SamplingPointScore],
        path: Path,
        *,
        noise: Mapping[str, float],
    ) -> None:
        assert {*report.rows.keys} <= {*noise}
        written.append((len(report.scores), len(points)))
        path.write_text("page", encoding="utf-8")

    module = ModuleType(PAGE)
    module.write_validation_page = write  # type: ignore[attr-defined]  # a stand-in
    monkeypatch.setitem(sys.modules, PAGE.rpartition(".")[0], ModuleType("validation_page"))
    monkeypatch.setitem(sys.modules, PAGE, module)
    return written


def run(*words: str | Path) -> Result:
    """Run `kernelcast validate` in this process."""
    return CliRunner().invoke(app, ["validate", "--jobs", "1", *map(str, words)])


def test_prints_a_table_per_device() -> None:
    """Errors, noise, coverage, classes, the worst kernels, and sampling points."""
    result = run("--models", "linear,ridge")
    assert result.exit_code == 0, result.output
    shown = result.stdout
    for words in ("device-0", "device-1", "linear", "ridge", "noise", "covered", "unanswered",
                  "90th", "worst of ridge", "suite/application1/kernel2", "1, 2", "default",
                  "->"):  # fmt: skip
        assert words in shown
    assert shown.count("worst of ridge") == 2
    assert "which device is fastest" not in shown  # no launch was made on both


def test_json_is_a_report_that_can_be_read() -> None:
    """What is printed is what `report_from_json` takes."""
    result = run("--models", "linear,ridge", "--json", "--coverage", "0.8")
    assert result.exit_code == 0, result.output
    report = report_from_json(result.stdout)
    assert [one.model for one in report.rows.models] == ["linear", "ridge"]
    assert (report.split, report.coverage) == ("kernel", 0.8)
    assert {one.device for one in report.scores} == {"device-0", "device-1"}
    assert len(report.rows.keys) + sum(observe(i).seconds < 0.1 for i in range(ROWS)) == ROWS


def test_the_filter_decides_what_counts() -> None:
    """Launches below either limit are not judged."""
    seconds = sorted(observe(number).seconds for number in range(ROWS))
    report = report_from_json(run("--models", "linear", "--json", "--shortest", seconds[9]).stdout)
    assert sorted(report.rows.measured_s) == seconds[9:]
    few = run("--models", "linear", "--json", "--shortest", 0, "--least-work-groups", 1010)
    assert len(report_from_json(few.stdout).rows.keys) == ROWS - 10
    none = run("--models", "linear", "--shortest", 99)
    assert none.exit_code == 2
    assert "0 of at least 99 s and 256 work-groups" in none.stderr
    assert "lower --shortest" in none.stderr


def test_devices_that_lack_kernels_end_with_status_1(place: Path) -> None:
    """The others are shown."""
    with open_store(place) as store:
        one = make_observation(2, kernels=KERNELS, devices=3)  # device-2
        store.add(replace(one, samples=(replace(one.samples[0], multiple=0),)))
    result = run("--models", "linear", "--json")
    assert result.exit_code == 1
    assert "every model on device-2: 1 row, 1 measured" in result.stderr
    assert {one.device for one in report_from_json(result.stdout).scores} == {
        "device-0", "device-1",
    }  # fmt: skip
    assert run("--models", "linear", "--json", "--device", "device-1").exit_code == 0


def test_out_writes_report_points_and_page(tmp_path: Path, pages: list[tuple[int, int]]) -> None:
    """Into a folder that is made if it is not there."""
    folder = tmp_path / "a" / "b"
    result = run("--models", "linear,two_point", "--out", folder)
    assert result.exit_code == 0, result.output
    report = report_from_json((folder / "validation.json").read_text(encoding="utf-8"))
    assert len(report.scores) == 4
    points = json.loads((folder / "sampling_points.json").read_text(encoding="utf-8"))
    assert [(one["device"], one["label"]) for one in points] == [
        ("device-0", "1, 2"), ("device-0", "default"), ("device-1", "1, 2"),
        ("device-1", "default"),
    ]  # fmt: skip
    assert {*points[0]} == {"device", "label", "multiple", "rows", "mean", "median", "p90", "cost"}
    assert pages == [(4, 4)]
    assert (folder / "validation.html").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--models", "linear,oracle"], "no model is called 'oracle'"),
        (["--models", "linear,,ridge"], "with commas between them"),
        (["--models", "linear,linear"], "each once"),
        (["--coverage", "1"], "--coverage"),
        (["--split", "suite"], "--split"),
        (["--shortest", "-1"], "--shortest"),
        (["--split", "device"], "at least 3 devices"),
        (["--data", "none.sqlite"], "there is no store"),
        (["--device", "bogus"], "no sampled observations"),
    ],
)
def test_bad_input_ends_with_status_2(words: list[str], reason: str) -> None:
    """Says what is wrong and what to do."""
    result = run(*words)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert not result.stdout


def test_a_folder_that_cannot_be_made_is_told_first(tmp_path: Path) -> None:
    """Before anything runs for minutes."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = run("--out", tmp_path / "file" / "folder")
    assert result.exit_code == 2
    assert "the folder cannot be made" in result.stderr


def test_ctrl_c_ends_with_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """As shells count it, without a traceback."""
    from kernelcast.cli.validate import run as training_validation

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training_validation, "validate_models", interrupt)
    result = run("--models", "linear")
    assert result.exit_code == 130
    assert "Traceback" not in result.output
