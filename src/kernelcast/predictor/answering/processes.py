"""What devices are asked, and the child processes that answer: one for each device and caller."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final, Protocol

from cachetools import LRUCache

from kernelcast.launches.recordings import LaunchFacts, Recording
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.model import SampledMoment, read_moment
from kernelcast.records.arguments import Access, ScalarArgument
from kernelcast.records.errors import KernelcastError, KernelRunError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.feature_vector import FeatureVector
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.samples import SampleRun, pool_moments
from kernelcast.workers import (
    SPARE,
    Confinement,
    MessageKind,
    Task,
    WarmChildren,
)

ReportProgress = Callable[[str], None]
MOST_MOMENTS: Final = 8
"""Of a launch: more say little more."""
_log = logging.getLogger("kernelcast.progress")
_caller: ContextVar[str] = ContextVar("caller", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRow:
    """What learned models see of one launch on one device: a row of a `TrainingTable`."""

    vector: FeatureVector
    columns: Mapping[str, float]
    """The table's other columns; NaN where one is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateTask:
    problem: Problem
    device_id: str
    settings: EstimateSettings
    wants_row: bool = False
    """Whether a learned model waits for the launch's features."""
    wants_counts: bool = True
    """Whether a copy of the kernel that counts is worth its build."""
    facts: LaunchFacts | None = None
    ends_s: float | None = None
    """`time.monotonic`, the same for all processes, at which it ends without samples."""
    waits_for_device: bool = False
    """Whether a program's own launches are waited for: the caller's time is limited."""
    runs_end_s: float = math.inf
    """`time.monotonic` at which whole runs have to be over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOutcome:
    """An estimate from samples, with all that came up on the way."""

    estimate: Estimate
    recording: Recording
    """Its facts are to be given back at the next sampling of the launch."""
    row: LaunchRow | None = None
    """What learned models need, where it was asked for and could be had."""
    row_failure: str = ""
    accesses: tuple[Access | None, ...] = ()
    """What the kernel may do with each argument; None where it is no buffer or unknown."""
    moments: tuple[SampledMoment, ...] = ()
    depends_on_contents: bool | None = None
    """Whether contents of buffers decide the work; None where the source was not read."""
    awaits_runs: bool = False
    by_clock: bool = False
    """Whether the host's clock timed the samples, since the device's events tell wrong times."""

    def as_kept(self, coverage: float) -> "EstimateOutcome":
        """Give it as an answer of some coverage that nothing was run for: it costs nothing anew."""
        free = replace(
            self.estimate,
            interval=replace(self.estimate.interval, coverage=coverage),
            sampling_seconds=0.0,
            overhead_seconds=0.0,
            build_seconds=0.0,
        )
        return replace(self, estimate=free)

    def without_launches(self) -> "EstimateOutcome":
        """Give all but the launches behind it: thousands of answers stay in memory."""
        return replace(self, recording=replace(self.recording, runs=(), whole_s=()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTask:
    """A launch that the analytic model of a device shall answer for alone."""

    problem: Problem
    device_id: str
    wants_bytes: bool = False
    """Whether to count the bytes that it touches, even if the model has no answer."""
    stand_in: str = ""
    """Name of the shipped description of a device that was not calibrated; may be empty."""
    wants_values: bool = False
    """Whether a learned model that needs no samples waits for features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutcome:
    analytic: AnalyticEstimate | None
    """None if the device was not calibrated."""
    ndrange: NDRange
    notes: tuple[str, ...] = ()
    touched_bytes: float = 0.0
    """Different bytes of buffers that the launch touches at least, where they were asked for."""
    depends_on_contents: bool | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    """Features that source and analytic model tell, where they were asked for."""


def append_moments(
    before: Iterable[SampledMoment], more: Iterable[SampledMoment]
) -> tuple[SampledMoment, ...]:
    newest = [*before, *more][-MOST_MOMENTS:]
    return tuple(replace(one, moment=str(number)) for number, one in enumerate(newest, start=1))


def read_moments(
    runs: Iterable[SampleRun], facts: LaunchFacts | None = None
) -> tuple[SampledMoment, ...]:
    """Read samples of a launch, those of each moment by themselves as far as they tell of all."""
    values = facts.values if facts else {}
    return tuple(
        read_moment(
            run,
            moment=str(number),
            imbalance=values.get("counters.loop_imbalance_ratio", math.nan),
            indirect=values.get("static.indirect_access_ratio", 0.0),
        )
        for number, run in enumerate(pool_moments(list(runs)), start=1)
    )


def annotate(estimate: Estimate, *warnings: str, **explained: Any) -> Estimate:  # noqa: ANN401
    return replace(
        estimate,
        warnings=(*estimate.warnings, *warnings),
        explanation=replace(estimate.explain(), **explained),
    )


def put_analytic(estimate: Estimate, found: AnalyticEstimate | None) -> Estimate:
    if found is None:
        return estimate
    estimates_s = {**estimate.estimates_s, "analytic": found.seconds}
    estimate = replace(estimate, estimates_s=estimates_s, limiter=found.limiter)
    return annotate(estimate, limiters=dict(found.limiters))


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
_TAKE_TURNS: Final = "kernelcast.sampling.host:take_turns_by"


class Executor(Protocol):
    """Answers tasks; tests have one that needs no device."""

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome: ...

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Ask the analytic model of a device; in this process, since the source is our caller's."""
        del timeout_s
        answer: ModelOutcome = resolve_name(_MODEL.entry)(task, report)
        return answer

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> float | None:
        """Count the instructions of a launch by its source; None where that does not tell."""
        from kernelcast.launches.source_check import count_work

        del device_id, asks  # this process counts: the source is the caller's own
        return count_work(problem)


class _Processes(Executor):
    samples_here = True

    def __init__(self, children: WarmChildren | None = None) -> None:
        self.children = children or WarmChildren()

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample a launch; samples that were there before something failed are given."""
        device_id = task.device_id
        sampled: EstimateOutcome | None = None
        with self.children.hold(device_id, _caller.get()) as child:
            started_s = time.perf_counter()
            messages = child.stream(_SAMPLE, task, timeout_s=timeout_s, subject=device_id)
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
                                f"{device_id}: the process that ran the kernel answered for "
                                "another device"
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
            raise KernelcastError(f"{device_id}: sampling ended without a result; please report it")
        estimate = sampled.estimate
        if estimate.measurement is not None:  # whole runs are no part of what an answer costs
            return sampled
        # The answer has taken all of this, processes and messages included.
        total_s = time.perf_counter() - started_s
        overhead_s = max(total_s - estimate.sampling_seconds, estimate.overhead_seconds)
        return replace(sampled, estimate=replace(estimate, overhead_seconds=overhead_s))

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
        return self.children.run(
            SPARE, _MODEL, task, timeout_s=timeout_s, subject=task.device_id, caller=_caller.get(),
            report=report,
        )  # fmt: skip

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> float | None:
        scalars = (one.values for one in problem.arguments if isinstance(one, ScalarArgument))
        key = (problem.kernel.digest, problem.ndrange, tuple(scalars))
        with self._lock:
            if key in self._counted or not asks:
                return self._counted.get(key)
        subject, items = device_id or problem.kernel.name, problem.ndrange.work_item_count
        with suppress(KernelcastError):  # a request for the launch itself reports what is wrong
            told = self.children.run(
                device_id, _COUNT, problem, timeout_s=5.0, subject=subject, caller=_caller.get()
            )
            # No launch of more instructions of a work-item would end: the count is the word of an
            # unknown caller.
            is_possible = len(told) == 1 and items <= told[0] <= 1e12 * items
            with self._lock:
                found = self._counted[key] = told[0] if is_possible else None
            return found
        return None
