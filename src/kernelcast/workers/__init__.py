"""Runs something elsewhere: one child process and one protocol, confined or free; clusters."""

from typing import Any

from kernelcast.records.errors import InputError
from kernelcast.workers.process import SPARE as SPARE
from kernelcast.workers.process import WROTE as WROTE
from kernelcast.workers.process import WarmChildren as WarmChildren
from kernelcast.workers.process import run_isolated as run_isolated
from kernelcast.workers.process import stream_isolated as stream_isolated
from kernelcast.workers.protocol import BESIDE as BESIDE
from kernelcast.workers.protocol import BUILDING as BUILDING
from kernelcast.workers.protocol import COUNTING as COUNTING
from kernelcast.workers.protocol import MessageKind as MessageKind
from kernelcast.workers.protocol import Reporter as Reporter
from kernelcast.workers.protocol import Task as Task
from kernelcast.workers.sandbox import Confinement as Confinement

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
