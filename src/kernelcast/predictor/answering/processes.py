"""Has devices sample in child processes: one for each device, or for each device and caller."""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from cachetools import LRUCache

from kernelcast.predictor.answering.tasks import (
    EstimateOutcome,
    EstimateTask,
    ModelOutcome,
    ModelTask,
    annotate,
)
from kernelcast.records.arguments import ScalarArgument
from kernelcast.records.errors import KernelcastError, KernelRunError
from kernelcast.records.problem import Problem
from kernelcast.workers import (
    SPARE,
    Confinement,
    Message,
    MessageKind,
    Task,
    WarmChildren,
    take_result,
)

ReportProgress = Callable[[str], None]
_log = logging.getLogger("kernelcast.progress")
_CHILD: Final = "kernelcast.predictor.answering.measuring"
_SAMPLE: Final = Task(
    entry=f"{_CHILD}:sample_on_device",
    returns=EstimateOutcome,
    gives=EstimateOutcome,
    most_items=2,
    is_timed_as_a_whole=True,
)
_MODEL: Final = Task(entry=f"{_CHILD}:model_alone", returns=ModelOutcome)
_COUNT: Final = Task(
    entry="kernelcast.launches.source_check:count_problem", returns=tuple[float, ...]
)
_TAKE_TURNS: Final = "kernelcast.sampling.cores:take_turns_by"
_caller: ContextVar[str] = ContextVar("caller", default="")


class Executor(Protocol):
    """Answers tasks; tests have one that needs no device."""

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome: ...

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model of a device; in this process, since the source is our caller's."""
        from kernelcast.predictor.answering.measuring import model_alone

        del timeout_s
        return model_alone(task, report)

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> float | None:
        """Count the instructions of a launch by its source; None where that does not tell."""
        from kernelcast.launches.source_check import count_work

        del device_id, asks  # this process counts: the source is the caller's own
        return count_work(problem)


def take_outcome(
    messages: Generator[Message, None, None], device_id: str, report: ReportProgress
) -> EstimateOutcome:
    """Take what a sampling tells; samples that were there before something failed are given."""
    started_s = time.perf_counter()
    sampled: EstimateOutcome | None = None
    try:
        with closing(messages):  # whatever a listener raises, the child waits for nobody
            for message in messages:
                if message.kind is MessageKind.PROGRESS:
                    _log.debug("%s: %s", device_id, message.content)
                    report(message.content)
                    continue
                outcome: EstimateOutcome = message.content
                if outcome.estimate.device_id != device_id:
                    raise KernelRunError(
                        f"{device_id}: the process that ran the kernel answered for another device"
                    )
                sampled = outcome
    except KernelcastError as error:
        if sampled is None:
            raise
        if sampled.awaits_runs:
            estimate = annotate(sampled.estimate, f"whole runs were not timed: {error}")
            return replace(sampled, estimate=estimate, awaits_runs=False)
        sampled = replace(sampled, row_failure=str(error))
    if sampled is None:
        raise KernelcastError(f"{device_id}: the sampling ended without a result; please report it")
    if sampled.estimate.measurement is not None:  # whole runs are no part of what an answer costs
        return sampled
    # The answer has taken all of this, processes and messages included.
    total_s, estimate = time.perf_counter() - started_s, sampled.estimate
    overhead_s = max(total_s - estimate.sampling_seconds, estimate.overhead_seconds)
    return replace(sampled, estimate=replace(estimate, overhead_seconds=overhead_s))


class _Processes(Executor):
    samples_here = True

    def __init__(self, children: WarmChildren | None = None) -> None:
        self.children = children or WarmChildren()

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample a launch; what crashes while features are made does not cost the samples."""
        device_id = task.device_id
        with self.children.hold(device_id, _caller.get()) as child:
            messages = child.stream(_SAMPLE, task, timeout_s=timeout_s, subject=device_id)
            return take_outcome(messages, device_id, report)

    def close(self) -> None:
        self.children.close()


class WarmProcesses(_Processes):
    """Asks each device in a child process of its own, which serves the next task."""


@contextmanager
def asked_by(caller: str) -> Iterator[None]:
    """Have samplings within the block be a caller's."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


class CallerProcesses(_Processes):
    """Asks devices in processes that serve one caller each, whose kernels meet no other's there."""

    def __init__(self, confinement: Confinement | None = None, turns: Path | None = None) -> None:
        """Have processes see what a confinement lets them (None: what we see), and take turns by a
        file on processors that their devices share (None: they take none)."""
        shared = None if turns is None else (turns, _TAKE_TURNS)
        super().__init__(WarmChildren(confinement, shared))
        self._counted: LRUCache[tuple[object, ...], float | None] = LRUCache(4096)
        self._lock = threading.Lock()

    def make_ready(self, device_ids: Sequence[str]) -> None:
        """Start a process for each device that has none, and wait for none; keep it so."""
        self.children.keep_ready(device_ids, f"{_CHILD}:make_ready_fully")

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        with self.children.hold(SPARE, _caller.get()) as child:
            messages = child.stream(_MODEL, task, timeout_s=timeout_s, subject=task.device_id)
            return take_result(_MODEL, messages, task.device_id, report)

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> float | None:
        """Count the instructions of a launch by its source; None where that does not tell."""
        scalars = (one.values for one in problem.arguments if isinstance(one, ScalarArgument))
        key = (problem.kernel.digest, problem.ndrange, tuple(scalars))
        with self._lock:
            if key in self._counted or not asks:
                return self._counted.get(key)
        subject, items = device_id or problem.kernel.name, problem.ndrange.work_item_count
        with suppress(KernelcastError):  # a request for the launch itself reports what is wrong
            with self.children.hold(device_id, _caller.get()) as child:
                messages = child.stream(_COUNT, problem, timeout_s=5.0, subject=subject)
                told = take_result(_COUNT, messages, subject)
            # No launch of more instructions of a work-item would end: the count is the word of an
            # unknown caller.
            is_possible = len(told) == 1 and items <= told[0] <= 1e12 * items
            with self._lock:
                found = self._counted[key] = told[0] if is_possible else None
            return found
        return None
