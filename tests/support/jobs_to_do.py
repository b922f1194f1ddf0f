"""What jobs of tests do in their processes; each has a name that a test orders."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelcast.service_state import StoreError

Tell = Callable[[dict[str, Any]], None]


def _count(database: str) -> int:
    """Count how often a job has begun, beside its database."""
    path = Path(database).with_name("count")
    count = int(path.read_text()) if path.exists() else 0
    path.write_text(str(count + 1))
    return count


def be_away_once(_: object, __: object, ___: Tell, *, database: str, **____: object) -> object:
    """Find no database the first time."""
    if not _count(database):
        raise StoreError("away")
    return 1


def die_twice(_: object, __: object, tell: Tell, *, database: str, **___: object) -> object:
    """Come further each time."""
    count = _count(database)
    tell({"done": count})
    if count < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return count


def die(*_: object, **__: object) -> None:
    """End with a word on standard error alone."""
    sys.stderr.write("out of memory")
    sys.stderr.flush()
    os._exit(7)


def sleep(_: object, __: object, tell: Tell, **___: object) -> None:
    """Come some way."""
    tell({"done": 3})
    time.sleep(600)
