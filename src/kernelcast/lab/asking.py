"""Asks the Lab's questions, each in a child process with a time limit."""

from kernelcast.lab.conditions import ConditionsReport, ConditionsTask, FieldComplaint
from kernelcast.lab.local_sizes import LocalSizeAnswer, LocalSizeTask
from kernelcast.lab.source import SourceReport, SourceTask
from kernelcast.workers import Confinement, Task, run_isolated

_SOURCE = Task(entry="kernelcast.lab.source:read_lab_source", returns=SourceReport)
_LOCAL_SIZES = Task(
    entry="kernelcast.lab.local_sizes:model_local_sizes",
    returns=tuple[LocalSizeAnswer, ...],
)
_CONDITIONS: Task[ConditionsReport | FieldComplaint] = Task(
    entry="kernelcast.lab.conditions:find_layer_conditions",
    returns=ConditionsReport | FieldComplaint,  # type: ignore[arg-type]  # a union is no class
)


def ask_source(
    task: SourceTask, *, timeout_s: float, confinement: Confinement | None = None
) -> SourceReport:
    """Read a source."""
    found: SourceReport = run_isolated(
        _SOURCE, task, timeout_s=timeout_s, confinement=confinement, subject="the source"
    )
    return found


def ask_local_sizes(
    task: LocalSizeTask, *, timeout_s: float, confinement: Confinement | None = None
) -> tuple[LocalSizeAnswer, ...]:
    """Model a launch with many local sizes."""
    found: tuple[LocalSizeAnswer, ...] = run_isolated(
        _LOCAL_SIZES, task, timeout_s=timeout_s, confinement=confinement, subject="the model"
    )
    return found


def ask_conditions(
    task: ConditionsTask, *, timeout_s: float, confinement: Confinement | None = None
) -> ConditionsReport | FieldComplaint:
    """Find layer conditions, or what is wrong with a field."""
    found: ConditionsReport | FieldComplaint = run_isolated(
        _CONDITIONS, task, timeout_s=timeout_s, confinement=confinement, subject="layer conditions"
    )
    return found
