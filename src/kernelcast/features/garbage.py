"""Keeps Python's garbage collector out of work that builds much and leaves no cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Keep Python from searching a growing tree for garbage: that took two thirds of reading it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
