from types import ModuleType

import pytest

from kernelcast.balancing import device_processes
from kernelcast.calibration import calibration
from kernelcast.collection import collection, corpus_checks
from kernelcast.lab import local_sizes, source
from kernelcast.launches import devices, features, tracing
from kernelcast.predictor.answering import processes
from kernelcast.tuning import device_runs
from kernelcast.workers import Task
from kernelcast.workers.decoding import prepare
from kernelcast.workers.task import find_function

MODULES = (
    calibration, corpus_checks, device_processes, device_runs, devices, processes,
    features, collection, local_sizes, source, tracing,
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda one: one.__name__.rpartition(".")[2])
def test_tasks_are_functions_whose_answers_can_be_read(module: ModuleType) -> None:
    """What a module orders from child processes is there, and its answers have readable types."""
    tasks = [one for one in vars(module).values() if isinstance(one, Task)]
    assert tasks
    for task in tasks:
        assert callable(find_function(task.entry))
        prepare(task.returns, task.gives)
