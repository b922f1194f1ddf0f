"""Kernels to begin with; each is a file of this package."""

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Final

import yaml

_FOLDER: Final = Path(__file__).parent / "examples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What the Lab's fields hold at first."""

    name: str
    title: str
    code: str
    kernel: str
    global_size: str
    args: str
    build_options: str = ""
    parameters: str = ""
    local_size: str = ""
    global_offset: str = ""


@cache
def list_examples() -> dict[str, Example]:
    """Read all examples, by name."""
    known = {one.name for one in fields(Example)}
    found = {}
    for path in sorted(_FOLDER.glob("*.yaml")):
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        texts = {key: str(value).rstrip("\n") for key, value in held.items() if key in known}
        name = path.stem.partition("-")[2]
        found[name] = Example(name=name, **texts)
    return found
