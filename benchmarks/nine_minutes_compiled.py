"""Compiled code that travels with `nine_minutes.py`: what a compiler made elsewhere, by its source.

Every interpreter of the run installs it: kernelcast's child processes ask it too.
"""

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import lzma
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

PREPARED = "NINE_MINUTES_PREPARED"
"""Folder of what was prepared."""
RECORDED = "NINE_MINUTES_RECORDED"
"""Folder into which each compilation is written: then the compiler is there, and asked."""
FILE_NAME = "compiled.xz"
_KEY_BYTES, _HEAD_BYTES = 64, 72
_ROOM = "kernelcast.compiling"


def find_key(source: str, options: Sequence[str], target: object) -> str:
    """Name a compilation by all that decides it."""
    return hashlib.sha256(json.dumps([source, list(options), str(target)]).encode()).hexdigest()


def install() -> None:
    """Have `kernelcast.compiling` looked up, or recorded, as the environment says."""
    if os.environ.get(PREPARED) or os.environ.get(RECORDED):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Changes one function of a room as soon as it is imported."""

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the room, and wrap what loads it."""
        if name != _ROOM:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_change(module: ModuleType) -> None:
                load(module)
                is_recording = bool(os.environ.get(RECORDED))
                module.compile_kernel = (_record if is_recording else _look_up)(module)  # type: ignore[attr-defined]

            spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


def _look_up(module: ModuleType) -> Any:  # noqa: ANN401 - a function
    """Make a `compile_kernel` that takes what was compiled elsewhere."""
    entries: dict[str, bytes] = {}
    compile_kernel = module.compile_kernel

    def find(source: str, options: Sequence[str] = (), target: object = None, **rest: Any) -> Any:  # noqa: ANN401
        if not entries:
            entries.update(read_compiled(Path(os.environ[PREPARED]) / FILE_NAME))
        entry = entries.get(find_key(source, options, target))
        if entry is None:
            return compile_kernel(source, options, target, **rest)
        from kernelcast.workers.decoding import decode

        return decode(entry, module.Compiled)

    return find


def _record(module: ModuleType) -> Any:  # noqa: ANN401 - a function
    """Make a `compile_kernel` that keeps what the compiler makes."""
    compile_kernel = module.compile_kernel

    def keep(source: str, options: Sequence[str] = (), target: object = None, **rest: Any) -> Any:  # noqa: ANN401
        from kernelcast.workers.encoding import encode

        compiled = compile_kernel(source, options, target, **rest)
        path = Path(os.environ[RECORDED]) / find_key(source, options, target)
        path.write_bytes(encode(compiled))
        return compiled

    return keep


def read_compiled(path: Path) -> dict[str, bytes]:
    """Read what was compiled, by `find_key`."""
    content, entries, at = lzma.decompress(path.read_bytes()), {}, 0
    while at < len(content):
        key, size = content[at : at + _KEY_BYTES], content[at + _KEY_BYTES : at + _HEAD_BYTES]
        begin = at + _HEAD_BYTES
        at = begin + int.from_bytes(size, "little")
        entries[key.decode()] = content[begin:at]
    return entries


def write_compiled(folder: Path, path: Path) -> int:
    """Pack what was recorded in a folder into one file, alike texts side by side; count it."""
    entries = sorted(
        ((one.name.encode(), one.read_bytes()) for one in folder.iterdir()),
        key=lambda entry: entry[1][:4000],
    )
    content = b"".join(
        key + len(entry).to_bytes(_HEAD_BYTES - _KEY_BYTES, "little") + entry
        for key, entry in entries
    )
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
    return len(entries)
