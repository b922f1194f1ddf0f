"""How a task in a child process speaks to whoever ordered it."""

from typing import Any, Protocol

from kernelcast.records.errors import KernelcastError


class Reporter(Protocol):
    """Takes sentences about the stage that begins, and results that are ready before the end."""

    def __call__(self, stage: str) -> None:
        """Tell which stage begins."""
        ...

    def give_up(self, error: KernelcastError) -> None:
        """End the process with an error as its answer; may be called from any thread."""
        ...

    def give(self, item: Any) -> None:  # noqa: ANN401 - each task has its own
        """Hand over a result; must be picklable."""
        ...
