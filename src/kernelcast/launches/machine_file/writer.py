"""Writes machine descriptions, one number per line, so that people can read and edit them."""

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kernelcast.launches.machine_file.plain import machine_to_plain
from kernelcast.records.errors import InputError, MachineFileError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.private_files import make_private_folder
from kernelcast.records.traits import TraitSource

_HEADER = """\
# What kernelcast knows of a device; docs/reference/machine-files.md explains the keys.
# To correct a number, replace its braces by a plain number: that reads as `source: assumed`.
"""
# Fractions that people read without counting zeros.
_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e6
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_SPACED = frozenset({
    "compute_units", "instructions", "caches", "memories", "costs", "not_obtained", "curves",
})  # fmt: skip


# What a device can do is no secret, and confined processes of a service that root has started read
# it as another user.
_READABLE, _OPEN = 0o644, 0o755


def dump_machine(machine: MachineDescription) -> str:
    """Give the text of a machine description file; `parse_machine` reads it back unchanged.

    Raises
    ------
    MachineFileError
        If a number is not finite.
    """
    lines = [_HEADER]
    for key, value in machine_to_plain(machine).items():
        if key in _SPACED:
            lines.append("\n")
        lines.extend(_lines(key, value, 0))
    return "".join(lines)


def write_machine(path: Path, machine: MachineDescription) -> None:
    """Write a description so that the file is there whole or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    text = dump_machine(machine)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _make_folder(path.parent)
        if path.exists() and not path.is_file():  # /dev/stdout and the like cannot be replaced
            path.write_text(text, encoding="utf-8")
            return
        try:
            partial.write_text(text, encoding="utf-8")
            partial.chmod(_READABLE)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{path}: the machine description cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def _make_folder(folder: Path) -> None:
    """Make the folder; the data folder above it is closed to others, this one need not be."""
    if not folder.exists():
        make_private_folder(folder)
        folder.chmod(_OPEN)


def _lines(key: Any, value: Any, depth: int) -> Iterator[str]:  # noqa: ANN401 - plain values
    """Write a key with its value: traits and lists on one line, other mappings indented."""
    start = f"{'  ' * depth}{_key(key)}:"
    if not isinstance(value, Mapping) or "value" in value:
        yield f"{start} {_inline(value)}\n"
        return
    if not value:
        yield f"{start} {{}}\n"
        return
    yield f"{start}\n"
    for inner, content in value.items():
        yield from _lines(inner, content, depth + 1)


def _inline(value: Any) -> str:  # noqa: ANN401 - plain values
    if isinstance(value, Mapping):
        if dict(value) == {"value": value["value"], "source": TraitSource.ASSUMED}:
            return _scalar(value["value"])
        return "{" + ", ".join(f"{key}: {_scalar(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value)
    text = str(value)
    style = None if text.isprintable() else '"'  # one line each
    # Inside a flow list PyYAML quotes whatever needs quotes anywhere.
    text = yaml.safe_dump(
        [text], default_flow_style=True, default_style=style, allow_unicode=True, width=math.inf
    )
    return text.strip().removeprefix("[").removesuffix("]")


def _key(value: object) -> str:
    """Write a key: plain if nobody could take it for something else."""
    text = str(value)
    is_plain = _PLAIN_KEY.fullmatch(text) and yaml.safe_load(text) == value
    return (
        text
        if isinstance(value, int) or is_plain
        else yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).strip()
    )


def _number(value: float) -> str:
    """Write a number so that it is read back the same, by any reader of YAML 1.1.

    Examples
    --------
    >>> _number(1e-9), _number(0.1), _number(19.5e12), _number(12)
    ('1.0e-09', '0.1', '1.95e+13', '12')
    """
    if not math.isfinite(value):
        msg = f"{value}: machine descriptions hold finite numbers only; leave it out instead"
        raise MachineFileError(msg)
    if isinstance(value, int) or value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return repr(value)
    return np.format_float_scientific(value, trim="0", exp_digits=2)
