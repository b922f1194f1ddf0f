"""What `mkdocs.yml` cannot say: documents link to files beside the folder `docs`, which come along.

A file that a document links to is published below ``repository/``, at the path that it has in the
repository; what such a file links to further stays words, unless it is published too.
"""

import os.path
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
BESIDE: Final = "repository/"
ALWAYS: Final = ("CHANGELOG.md",)
_LINK: Final = re.compile(
    r"(?P<image>!?)\[(?P<words>[^\]]*)\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)"
)
_CODE: Final = re.compile(r"(```.*?```)", re.DOTALL)


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the files beside `docs` that documents link to."""
    from mkdocs.structure.files import File, InclusionLevel

    documents = [Path(one.abs_src_path or "") for one in files.documentation_pages()]
    wanted = {ROOT / one for one in ALWAYS}
    for document in documents:
        wanted |= {one for one in _list_targets(document) if not one.is_relative_to(ROOT / "docs")}
    # Pictures of what comes along come along.
    for one in sorted(wanted):
        if one.suffix == ".md":
            wanted |= {each for each in _list_targets(one) if each.suffix in {".png", ".svg"}}
    for one in sorted(wanted):
        if not one.is_relative_to(ROOT / "docs"):
            name = BESIDE + one.relative_to(ROOT).as_posix()
            new = File.generated(config, name, abs_src_path=str(one))
            new.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(new)
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Point links that lead out of `docs` to where the files are published."""
    published = page.file.src_uri
    home = (
        (ROOT / published.removeprefix(BESIDE))
        if published.startswith(BESIDE)
        else ROOT / "docs" / published
    )

    def point(match: re.Match[str]) -> str:
        target = match["target"]
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = Path(os.path.normpath(home.parent / target))
        if path.is_relative_to(ROOT / "docs"):
            name = path.relative_to(ROOT / "docs").as_posix()
        elif path.is_relative_to(ROOT):
            name = BESIDE + path.relative_to(ROOT).as_posix()
        else:
            return match["words"]
        if files.get_file_from_path(name) is None:
            return match["words"]
        address = os.path.relpath(name, Path(published).parent)
        return f"{match['image']}[{match['words']}]({address}{match['anchor'] or ''})"

    parts = _CODE.split(markdown)
    return "".join(one if one.startswith("```") else _LINK.sub(point, one) for one in parts)


def _list_targets(document: Path) -> set[Path]:
    """List the files of the repository that a document links to."""
    if document.suffix != ".md":
        return set()
    text = _CODE.sub("", document.read_text(encoding="utf-8"))
    paths = {
        Path(os.path.normpath(document.parent / match["target"]))
        for match in _LINK.finditer(text)
        if match["target"] and "://" not in match["target"]
    }
    return {one for one in paths if one.is_relative_to(ROOT) and one.is_file()}
