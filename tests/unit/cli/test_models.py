from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.models.persistence import StoredModel
from kernelcast.models.time_models import make_model
from kernelcast.models.validation.running import validate
from kernelcast.training.registry import MODELS_VARIABLE, open_registry
from support.synthetic_rows import make_rows

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
        registry.publish(
            StoredModel(name=NAME, model=model.fit(one), report=report if number else None)
        )
        for number, one in enumerate(tables)
    ]


def run(*words: str | Path) -> Result:
    """Run `kernelcast models`."""
    return CliRunner().invoke(app, ["models", *map(str, words)])


def test_unknown_versions_and_damaged_files_are_errors(versions: list[str], place: Path) -> None:
    """Each names what is wrong, and ends with status 2."""
    unknown = run("pin", NAME, "0009")
    assert unknown.exit_code == 2
    assert "no version begins with '0009'" in unknown.stderr
    (place / NAME / f"{versions[2]}.json").write_bytes(b"damaged")
    damaged = run("show", NAME)
    assert damaged.exit_code == 2
    assert "is not the file that was published" in damaged.stderr
    (place / NAME / "versions.json").write_text("[]", encoding="utf-8")
    assert "list of versions is damaged" in run("ls").stderr
