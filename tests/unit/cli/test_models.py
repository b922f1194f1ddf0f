import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.models.catalogue import make_model
from kernelcast.models.validation import validate
from kernelcast.training.registry import MODELS_VARIABLE, open_registry
from support.synthetic_rows import SCHEMA, make_rows

TABLE = make_rows(kernels=4, sizes=2)
NAME = "linear/device-0"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name the registry that commands use."""
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def versions(place: Path) -> list[str]:
    """Publish three versions; the first was not validated."""
    registry = open_registry(str(place))
    model = make_model("linear")
    report = validate(TABLE, [model], TABLE.kernels)
    tables = [TABLE.take(TABLE.kernels != name) for name in sorted({*TABLE.kernels})[:3]]
    return [
        registry.publish(NAME, model.fit(one), SCHEMA, report if number else None)
        for number, one in enumerate(tables)
    ]


def run(*words: str | Path) -> Result:
    """Run `kernelcast models`."""
    return CliRunner().invoke(app, ["models", *map(str, words)])


def run_json(*words: str | Path) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Run a command with `--json`; give what it prints."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_every_command_is_there() -> None:
    """Offers each command with a line of help."""
    shown = run("--help").stdout
    group = app.get_command(click.Context(app), "models")
    assert isinstance(group, click.Group)
    names = group.list_commands(click.Context(group))
    assert names == ["ls", "pin", "rollback", "show", "unpin"]
    for name in names:
        assert f"  {name} " in shown
        assert run(name, "--help").exit_code == 0
    assert run("bogus").exit_code == 2


def test_an_empty_registry_has_no_models(place: Path) -> None:
    """Says so and how to make some; makes nothing."""
    assert "no models yet; `kernelcast train` makes them" in run("ls").stdout
    assert run_json("ls") == []
    assert not place.exists()


def test_ls_lists_models_with_what_is_in_use(versions: list[str], place: Path) -> None:
    """A line per model."""
    expected = {"name": NAME, "versions": versions, "used": versions[2], "latest": versions[2],
                "pinned": None}  # fmt: skip
    assert run_json("ls") == [expected]
    assert run_json("ls", "--registry", place) == [expected]
    shown = run("ls").stdout
    assert NAME in shown
    assert versions[2] in shown


def test_show_has_everything(versions: list[str]) -> None:
    """What was learned from, and how good it is; of the version in use, or of another."""
    found = run_json("show", NAME)
    assert found["version"] == versions[2]
    assert found["schema"] == SCHEMA.id
    assert found["features"] == list(SCHEMA.names)
    assert found["learned"]["rows"] == 6
    assert len(found["learned"]["data_digest"]) == 64
    assert "scikit-learn" in found["trained_with"]
    (score,) = found["validation"]
    assert (score["model"], score["device"], score["rows"]) == ("linear", "device-0", 8)
    shown = run("show", NAME).stdout
    for words in (versions[2], "one kernel held out", found["learned"]["data_digest"], "median"):
        assert words in shown
    first = run_json("show", NAME, "--version", "0001")
    assert (first["version"], first["validation"]) == (versions[0], None)
    assert "was not validated" in run("show", NAME, "--version", versions[0]).stdout


def test_pin_rollback_and_unpin_decide_what_is_in_use(versions: list[str]) -> None:
    """A pinned version is used whatever is the latest."""
    assert run_json("pin", NAME, "0001")["used"] == versions[0]
    rolled = run_json("rollback", NAME)
    assert (rolled["used"], rolled["latest"]) == (versions[0], versions[1])
    assert run_json("show", NAME)["version"] == versions[0]
    free = run_json("unpin", NAME)
    assert (free["used"], free["latest"], free["pinned"]) == (versions[1], versions[1], None)
    assert run_json("ls")[0]["versions"] == versions
    said = run("pin", NAME, "0003").stdout
    assert f"{NAME}: {versions[2]} is in use, pinned; the latest is {versions[1]}" in said
    run("unpin", NAME)
    run("rollback", NAME)
    last = run("rollback", NAME)
    assert last.exit_code == 2
    assert f"no version before {versions[0]}" in last.stderr


@pytest.mark.parametrize("words", [["show"], ["pin", "0001"], ["unpin"], ["rollback"]])
def test_unknown_models_are_named_with_those_there_are(
    words: list[str], versions: list[str], place: Path
) -> None:
    """And nothing is made of them."""
    command, *rest = words
    result = run(command, "linear/other", *rest)
    assert result.exit_code == 2
    assert f"no model linear/other; there are: {NAME}" in result.stderr
    assert [one["name"] for one in run_json("ls")] == [NAME]
    assert not (place / "linear" / "other").exists()


def test_unknown_versions_and_damaged_files_are_errors(versions: list[str], place: Path) -> None:
    """Each names what is wrong, and ends with status 2."""
    unknown = run("pin", NAME, "0009")
    assert unknown.exit_code == 2
    assert "no version begins with '0009'" in unknown.stderr
    (place / NAME / f"{versions[2]}.skops").write_bytes(b"damaged")
    damaged = run("show", NAME)
    assert damaged.exit_code == 2
    assert "is not the file that was published" in damaged.stderr
    (place / NAME / "versions.json").write_text("[]", encoding="utf-8")
    assert "list of versions is damaged" in run("ls").stderr
