"""The versions that CI installs."""

import re
import tomllib
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_LOCK = (_ROOT / "requirements-ci.txt").read_text(encoding="utf-8")
_PROJECT: dict[str, Any] = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_NAME = re.compile(r"[\w.-]+")


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found is not None
    return _normalise(found[0])


def test_every_dependency_is_locked() -> None:
    """Whoever adds a dependency has to write the lock anew."""
    project = _PROJECT["project"]
    asked = [*project["dependencies"], *_PROJECT["build-system"]["requires"]]
    extras = project["optional-dependencies"].items()
    # Nothing of ours imports MLflow, and it brings more packages than all the rest.
    asked += [one for name, extra in extras if name != "mlflow" for one in extra]
    locked = {_normalise(one) for one in re.findall(r"^([\w.-]+)==", _LOCK, re.MULTILINE)}
    assert {_find_name(one) for one in asked} - {"kernelcast"} <= locked


def test_every_version_has_its_hashes() -> None:
    """A package that was exchanged at its registry is not installed."""
    entries = re.split(r"^(?=[\w.-]+==)", _LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    assert all("--hash=sha256:" in one for one in entries)


def test_the_lock_names_no_place() -> None:
    """Holds neither registries nor paths: each machine has its own."""
    assert not re.search(r"://|^\s*--(extra-)?index|^\s*(/|-e)", _LOCK, re.MULTILINE)
