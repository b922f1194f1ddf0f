"""Keeps what compilers wrote, by a digest of everything that decided it, in the user's cache."""

import contextlib
import hashlib
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernelcast.records.private_files import user_cache_folder, write_private


def find_folder() -> Path | None:
    """Find the folder that holds them; None where the user has no home."""
    folder = user_cache_folder()
    return folder and folder / "kernelcast" / "compiled"


def digest(parts: Iterable[str | bytes]) -> str:
    """Make a name from all that decides a content; no two lists of parts share one."""
    hasher = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        hasher.update(len(content).to_bytes(8, "little") + content)
    return hasher.hexdigest()


def read(key: str) -> dict[str, Any] | None:
    folder = find_folder()
    if folder is None:
        return None
    path = folder / f"{key}.json"
    try:
        entry: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError):
        path.touch()  # the longest unused go first
    return entry


def write(key: str, entry: dict[str, Any]) -> None:
    """Write an entry whole; where that cannot be, it is made anew each time."""
    folder = find_folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        write_private(folder / f"{key}.json", json.dumps(entry).encode())
        if random.randrange(50):  # a look at 5,000 files takes 30 ms
            return
        sizes = {path: path.stat() for path in folder.glob("*.json")}
        excess = sum(status.st_size for status in sizes.values()) - (256 << 20)
        for path in sorted(sizes, key=lambda path: sizes[path].st_mtime_ns):
            if excess > 0:
                path.unlink(missing_ok=True)
                excess -= sizes[path].st_size
