"""How the package is cited."""

from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

CITATION: dict[str, Any] = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "CITATION.cff").read_text(encoding="utf-8")
)
REFERENCES: list[dict[str, Any]] = CITATION["references"]


def test_the_file_has_what_the_format_requires() -> None:
    """Has the four keys that version 1.2.0 of the Citation File Format requires, not empty."""
    assert CITATION["cff-version"] == "1.2.0"
    assert all(CITATION[key] for key in ("message", "title", "authors"))
    assert CITATION["type"] == "software"


def test_the_file_is_about_this_package() -> None:
    """Says name, version, license and keywords as the package's metadata does."""
    ours = metadata("kernelcast")
    assert (CITATION["title"], CITATION["version"]) == (ours["Name"], ours["Version"])
    assert CITATION["license"] == ours["License-Expression"]
    assert set(CITATION["keywords"]) == set(ours["Keywords"].split(","))


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
