"""Connects to the machines of a Dask cluster."""

from typing import Any

from kernelcast.records.errors import InputError

_CONNECT_TIMEOUT_S = 10.0


def connect(scheduler: str) -> Any:  # noqa: ANN401 - the library ships no types
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
