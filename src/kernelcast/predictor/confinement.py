"""Whether strangers' kernels can be run where they see nothing of ours, and how."""

from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from pathlib import Path

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.machines import machine_path
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.workers import Confinement, Task, run_isolated
from kernelcast.workers.sandbox import PROGRAM

_TRIAL: Task[tuple[str, ...]] = Task(
    entry="kernelcast.workers.sandbox:list_view", returns=tuple[str, ...]
)
_MACHINES = "/tmp/data/kernelcast/machines"


class SandboxMode(StrEnum):
    """Whether processes with strangers' kernels are confined."""

    AUTO = "auto"
    """Where it works; it is said where it does not."""
    REQUIRED = "required"
    """Always; without it nothing starts."""
    OFF = "off"
    """Never: something else protects."""


def choose_protection(
    mode: SandboxMode, hidden: Iterable[Path] = ()
) -> tuple[Confinement | None, str]:
    """Choose what their processes may see, None for all that this user can, and say why that is
    more than it should be; empty where it is not, or the mode is off."""
    if mode is SandboxMode.OFF:
        return None, ""
    confinement = Confinement(
        readable=((machine_path("any").parent, _MACHINES),), hidden=(data_folder(), *hidden)
    )
    failure = _try_it()
    if not failure:
        return confinement, ""
    if mode is SandboxMode.REQUIRED:
        raise InputError(f"--sandbox required: {failure}")
    return None, failure


@cache
def _try_it() -> str:
    """Start a confined process; give what is wrong with it, and what to do."""
    try:
        seen = run_isolated(
            _TRIAL, None, timeout_s=60.0, subject="sandbox", confinement=Confinement()
        )
    except FileNotFoundError:
        return (
            f"there is no {PROGRAM}; install bubblewrap (`apt install bubblewrap`, "
            "`dnf install bubblewrap`)"
        )
    except KernelcastError as error:
        return (
            f"{PROGRAM} does not work here ({error}); it needs user namespaces, which containers "
            "and some distributions forbid"
        )
    return f"a confined process still sees {', '.join(seen)}" if seen else ""
