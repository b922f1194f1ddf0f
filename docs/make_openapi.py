"""Writes docs/reference/openapi.yaml from the service itself.

``python docs/make_openapi.py`` writes it. A changed API needs a changed `API_VERSION`: without one
nothing is written. With ``--check`` it only says, by its exit status, whether the file is up to
date.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from kernelcast.service import create_app

REFERENCE = Path(__file__).parent / "reference" / "openapi.yaml"
_DIGEST = "x-content-digest"
_HEADER = "# Written by docs/make_openapi.py from kernelcast.service; do not edit.\n"


def make_description() -> dict[str, Any]:
    """Give the API's description with a digest of everything but its version."""
    described: dict[str, Any] = create_app().openapi()
    info = {**described["info"], _DIGEST: digest(described)}
    return {**described, "info": info}


def digest(described: dict[str, Any]) -> str:
    """Hash what a change of must change the version."""
    info = {key: one for key, one in described["info"].items() if key not in {"version", _DIGEST}}
    text = json.dumps({**described, "info": info}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def write(described: dict[str, Any]) -> str:
    """Give the text of the file."""
    return _HEADER + yaml.safe_dump(described, sort_keys=False, allow_unicode=True, width=100)


def needs_new_version(described: dict[str, Any], known: dict[str, Any]) -> bool:
    """Tell whether the API differs from the one described before under the same version."""
    now, before = described["info"], known["info"]
    return now["version"] == before["version"] and now[_DIGEST] != before[_DIGEST]


def main(arguments: list[str]) -> int:
    """Write or check the description; give the exit status."""
    described = make_description()
    text = write(described)
    is_there = REFERENCE.is_file()
    before = REFERENCE.read_text(encoding="utf-8") if is_there else ""
    if before == text:
        return 0
    if is_there and needs_new_version(described, yaml.safe_load(before)):
        sys.stderr.write(
            "the API has changed and its version has not; raise API_VERSION in "
            "src/kernelcast/service/settings.py\n"
        )
        return 1
    if "--check" in arguments:
        sys.stderr.write(f"{REFERENCE} is out of date; run `python docs/make_openapi.py`\n")
        return 1
    REFERENCE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
