import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kernelcast.launches.data_store import STORE_VARIABLE
from kernelcast.models.validation.report import report_from_json
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.records.observation import Observation
from kernelcast.records.training_table import TrainingTable
from kernelcast.reports import drawing
from kernelcast.training import comparing
from kernelcast.training import table as tables
from kernelcast.training.registry import open_registry
from kernelcast.training_data.store import open_store
from support.commands import run_command
from support.observations import make_observation
from support.synthetic_rows import make_rows

train = partial(run_command, "train", "--jobs", "1", "--model", "linear", "--no-validation")
compare = partial(run_command, "compare", "linear", "ridge")
TABLE = make_rows(kernels=4, sizes=2, devices=3)
NAMES = sorted({*TABLE.devices})


def give_rows(monkeypatch: pytest.MonkeyPatch, rows: TrainingTable) -> None:
    monkeypatch.setattr(tables, "load_training_table", lambda *_, **__: rows)


def test_a_device_that_cannot_be_served_ends_with_status_1(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are trained; the reason is told in both forms. A registry that cannot be written
    is named."""
    keep = (TABLE.devices != NAMES[0]) | (TABLE.kernels == TABLE.kernels[0])
    give_rows(monkeypatch, TABLE.take(keep))
    result = train("--json")
    assert result.exit_code == 1
    *trained, refused = json.loads(result.stdout)
    assert [one["name"] for one in trained] == [f"linear/{name}" for name in NAMES[1:]]
    assert refused["name"] == f"linear/{NAMES[0]}"
    assert refused["error_message"] in result.stderr
    told = "2 measured, 2 of these sampled, of 1 kernel; at least 3 kernels"
    assert told in refused["error_message"]
    assert f"kernelcast collect --device {NAMES[0]}" in refused["error_message"]
    (home / "file").write_text("", encoding="utf-8")
    unwritten = train("--registry", home / "file")
    assert (unwritten.exit_code, str(home / "file") in unwritten.stderr) == (2, True)
    assert "internal error" not in unwritten.stderr


def test_an_interrupt_keeps_what_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models before the interrupt stay in the registry."""
    give_rows(monkeypatch, TABLE)
    publish = VersionedFiles.publish
    calls: list[str] = []

    def interrupt(registry: VersionedFiles, name: str, text: str) -> str:
        if len(calls) == 1:
            raise KeyboardInterrupt
        calls.append("")
        return publish(registry, name, text)

    monkeypatch.setattr(VersionedFiles, "publish", interrupt)
    result = train()
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert open_registry().find_versions(f"linear/{NAMES[0]}").versions
    assert not open_registry().find_versions(f"linear/{NAMES[1]}").versions


def test_devices_that_lack_kernels_end_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are shown."""

    def observe(number: int, devices: int = 2) -> Observation:
        one = make_observation(number, kernels=5, devices=devices)
        return replace(one, samples=(replace(one.samples[0], multiple=0), *one.samples))

    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "rows.sqlite"))
    with open_store(tmp_path / "rows.sqlite") as store:
        store.add_many([*map(observe, range(40)), observe(2, devices=3)])  # device-2
    words = ("validate", "--jobs", "1", "--models", "linear", "--json")
    result = run_command(*words)
    assert result.exit_code == 1
    assert "every model on device-2: 1 row, 1 measured" in result.stderr
    assert "kernelcast collect --device device-2" in result.stderr
    judged = {one.device for one in report_from_json(result.stdout).scores}
    assert judged == {"device-0", "device-1"}
    assert run_command(*words, "--device", "device-1").exit_code == 0


def test_shows_all_methods_and_their_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors, pairs, classes, rules and reasons in the terminal; figures too on the page."""
    give_rows(monkeypatch, make_rows(kernels=28, sizes=2, devices=2))
    result = compare(
        "history", "--shortest", "0", "--least-work-groups", "0", "--resamples", "200", "--jobs",
        "1", "--split", "kernel", "--out", tmp_path,
    )  # fmt: skip
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
    result = compare("--out", tmp_path / "out")
    assert (result.exit_code, "kernelcast[plot]" in result.stderr) == (2, True)
