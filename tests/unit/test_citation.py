"""How the package is cited."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

_ROOT = Path(__file__).resolve().parents[2]
CITATION: dict[str, Any] = yaml.safe_load((_ROOT / "CITATION.cff").read_text(encoding="utf-8"))
REFERENCES: list[dict[str, Any]] = CITATION["references"]


def test_the_file_has_what_the_format_requires() -> None:
    """Has the four keys that version 1.2.0 of the Citation File Format requires, not empty."""
    assert CITATION["cff-version"] == "1.2.0"
    assert all(CITATION[key] for key in ("message", "title", "authors"))
    assert CITATION["type"] == "software"


def test_the_file_is_about_this_package() -> None:
    """Says name, version, license and keywords as the package's metadata does."""
    ours = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for theirs, key in (("title", "name"), ("version", "version"), ("license", "license")):
        assert CITATION[theirs] == ours[key]
    assert set(CITATION["keywords"]) == set(ours["keywords"])


def test_the_version_is_in_the_changelog() -> None:
    """Has a section with a date for the version that is being built, the day that is cited."""
    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{CITATION['version']}] - {CITATION['date-released']}\n" in text


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda one: one["authors"][0]["family-names"])
def test_every_paper_can_be_found(reference: dict[str, Any]) -> None:
    """Has title, authors with both names, year and where the paper appeared."""
    assert reference["type"] in {"article", "conference-paper"}
    assert reference["title"]
    assert isinstance(reference["year"], int)
    assert reference.get("journal") or reference["collection-title"]
    assert all(author.keys() == {"family-names", "given-names"} for author in reference["authors"])
    assert reference.get("doi", "10.").startswith("10.")


def test_all_papers_are_there() -> None:
    """Refers to the five papers whose methods are used."""
    firsts = {one["authors"][0]["family-names"] for one in REFERENCES}
    assert firsts == {"Dao", "Ernst", "Hammer", "Xu", "Lemeire"}
