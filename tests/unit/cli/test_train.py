import json
from functools import partial
from pathlib import Path

import pytest

from kernelcast.models.persistence import ModelRegistry, StoredModel
from kernelcast.records.training_table import TrainingTable
from kernelcast.training import table as tables
from kernelcast.training.registry import open_registry
from support.commands import run_command
from support.synthetic_rows import make_rows

run = partial(run_command, "train", "--jobs", "1")
TABLE = make_rows(kernels=4, sizes=2, devices=3)
NAMES = sorted({*TABLE.devices})


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand out rows that stand for any data."""

    def load(_: object, *, devices: tuple[str, ...], **__: object) -> TrainingTable:
        return TABLE.take(TABLE.devices == devices[0]) if devices else TABLE

    monkeypatch.setattr(tables, "load_training_table", load)


def test_a_device_that_cannot_be_served_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others are trained; the reason is told in both forms."""
    keep = (TABLE.devices != NAMES[0]) | (TABLE.kernels == TABLE.kernels[0])
    monkeypatch.setattr(tables, "load_training_table", lambda *_, **__: TABLE.take(keep))
    result = run("--model", "linear", "--no-validation", "--json")
    assert result.exit_code == 1
    *trained, refused = json.loads(result.stdout)
    assert [one["name"] for one in trained] == [f"linear/{name}" for name in NAMES[1:]]
    assert refused["name"] == f"linear/{NAMES[0]}"
    assert refused["error_message"] in result.stderr


def test_an_interrupt_keeps_what_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models before the interrupt stay in the registry."""
    publish = ModelRegistry.publish
    calls: list[str] = []

    def interrupt(registry: ModelRegistry, stored: StoredModel) -> str:
        if len(calls) == 1:
            raise KeyboardInterrupt
        calls.append("")
        return publish(registry, stored)

    monkeypatch.setattr(ModelRegistry, "publish", interrupt)
    result = run("--model", "linear", "--no-validation")
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert open_registry().find_versions(f"linear/{NAMES[0]}").versions
    assert not open_registry().find_versions(f"linear/{NAMES[1]}").versions


def test_a_registry_that_cannot_be_written_is_an_error(home: Path) -> None:
    """Names the place."""
    (home / "file").write_text("", encoding="utf-8")
    result = run("--registry", home / "file", "--model", "linear", "--no-validation")
    assert result.exit_code == 2
    assert str(home / "file") in result.stderr
    assert "internal error" not in result.stderr
