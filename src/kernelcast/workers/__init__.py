"""Runs something elsewhere: one child process and one protocol, confined or free; clusters."""

from typing import Any

from kernelcast.records.errors import InputError
from kernelcast.workers.process import (
    SPARE,
    WROTE,
    WarmChildren,
    run_isolated,
    stream_isolated,
    take_result,
)
from kernelcast.workers.protocol import (
    BESIDE,
    BUILDING,
    COUNTING,
    Message,
    MessageKind,
    Reporter,
    Task,
)
from kernelcast.workers.sandbox import Confinement

__all__ = [
    "BESIDE",
    "BUILDING",
    "COUNTING",
    "SPARE",
    "WROTE",
    "Confinement",
    "Message",
    "MessageKind",
    "Reporter",
    "Task",
    "WarmChildren",
    "connect_cluster",
    "run_isolated",
    "stream_isolated",
    "take_result",
]
_CONNECT_TIMEOUT_S = 10.0


def connect_cluster(scheduler: str) -> Any:  # noqa: ANN401 - the library ships no types
    """Connect to the machines of a Dask cluster; an error says what to do."""
    try:
        import distributed
    except ImportError as error:
        msg = "--scheduler needs the Dask cluster library: pip install 'kernelcast[cluster]'"
        raise InputError(msg) from error
    try:
        return distributed.Client(  # type: ignore[no-untyped-call]  # ships no types
            scheduler, timeout=_CONNECT_TIMEOUT_S, set_as_default=False
        )
    except (OSError, TimeoutError, ValueError) as error:
        msg = f"{scheduler}: no Dask scheduler answers ({error}); start one by `dask scheduler`"
        raise InputError(msg) from error
