from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

import kernelcast
from kernelcast.workers import Task
from kernelcast.workers.wire import prepare

SRC = Path(kernelcast.__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(SRC).with_suffix("").parts)
    for path in sorted(SRC.glob("kernelcast/**/*.py"))
    if "Task(" in (text := path.read_text(encoding="utf-8")) and "entry=" in text
]


@pytest.mark.parametrize("name", MODULES)
def test_tasks_are_functions_whose_answers_can_be_read(name: str) -> None:
    """What a module orders from child processes is there, and its answers have readable types."""
    held = [[one, *one.values()] if isinstance(one, dict) else [one]
            for one in vars(import_module(name)).values()]  # fmt: skip
    tasks = [one for some in held for one in some if isinstance(one, Task)]
    assert tasks
    for task in tasks:
        assert callable(resolve_name(task.entry))
        prepare(task.returns, task.gives)
