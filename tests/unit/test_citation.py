"""How the package is cited."""

import tomllib
from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).resolve().parents[2]
CITATION: dict[str, Any] = yaml.safe_load((_ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_file_is_about_this_package() -> None:
    """Has what version 1.2.0 of the format requires, and says what the package's metadata does."""
    assert (CITATION["cff-version"], CITATION["type"]) == ("1.2.0", "software")
    assert all(CITATION[key] for key in ("message", "title", "authors"))
    ours = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for theirs, key in (("title", "name"), ("version", "version"), ("license", "license")):
        assert CITATION[theirs] == ours[key]
    assert set(CITATION["keywords"]) == set(ours["keywords"])
    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{CITATION['version']}] - {CITATION['date-released']}\n" in text


def test_the_papers_can_be_found() -> None:
    """The five whose methods are used, with title, authors, year and where each appeared."""
    references: list[dict[str, Any]] = CITATION["references"]
    firsts = {one["authors"][0]["family-names"] for one in references}
    assert firsts == {"Dao", "Ernst", "Hammer", "Xu", "Lemeire"}
    for one in references:
        assert one["type"] in {"article", "conference-paper"}
        assert one["title"]
        assert isinstance(one["year"], int)
        assert one.get("journal") or one["collection-title"]
        assert all(author.keys() == {"family-names", "given-names"} for author in one["authors"])
        assert one.get("doi", "10.").startswith("10.")
