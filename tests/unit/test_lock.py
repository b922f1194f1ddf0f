"""The versions that CI installs."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_ROOT = Path(__file__).resolve().parents[2]


def test_every_dependency_is_locked_with_its_hashes() -> None:
    """Whoever adds a dependency has to write the lock anew; it names no registry and no path."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    asked = [*project["dependencies"], *settings["build-system"]["requires"]]
    extras = project["optional-dependencies"].items()
    # Nothing of ours imports MLflow, and it brings more packages than all the rest.
    asked += [one for name, extra in extras if name != "mlflow" for one in extra]
    lock = (_ROOT / "requirements-ci.txt").read_text(encoding="utf-8")
    locked = {canonicalize_name(one) for one in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    names = {canonicalize_name(Requirement(one).name) for one in asked}
    assert names - {"kernelcast"} <= locked
    # A package that was exchanged at its registry is not installed.
    entries = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    assert all("--hash=sha256:" in one for one in entries)
    assert not re.search(r"://|^\s*--(extra-)?index|^\s*(/|-e)", lock, re.MULTILINE)
