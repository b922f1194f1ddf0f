"""Settings of Python's interpreter for work that builds large trees and recurses deeply."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_STACK_BYTES = 512 << 20
"""Address space; memory is taken only as far as the stack grows."""
_MOST_FRAMES = 60_000
_LOCK = threading.Lock()

Result = TypeVar("Result")


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


def run_deep(function: Callable[[], Result]) -> Result:
    """Run a function with room for deep recursion."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - it is raised again by the caller
            errors.append(error)

    with _LOCK:  # both settings are the whole process's
        frames, stack_bytes = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
        try:
            sys.setrecursionlimit(max(frames, _MOST_FRAMES))
            thread = threading.Thread(target=run, name="kernelcast deep stack")
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(frames)
            threading.stack_size(stack_bytes)
    if errors:
        raise errors[0]
    return results[0]
