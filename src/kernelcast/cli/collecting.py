"""Asks for every answer and keeps what is there, whatever ends the asking."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar

from kernelcast.cli.terminal import ExitStatus, complain, status_of
from kernelcast.launches.devices import refuse_unknown_ids
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.recordings import RecordedAnswer, Recording, read_recordings
from kernelcast.launches.settings import EstimateSettings, prefix
from kernelcast.launches.source_check import refuse_misfits
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.records.problem import Problem

T = TypeVar("T")
Report = Callable[[str], None]


@dataclass(slots=True)
class Collected(Generic[T]):
    """What has been answered so far, whatever ends the asking."""

    answers: list[T] = field(default_factory=list)
    """In the order of problems and devices."""
    failures: list[tuple[str, KernelcastError]] = field(default_factory=list)
    """Of single devices, with the names of problems."""
    refusals: list[tuple[str, KernelcastError]] = field(default_factory=list)
    """Of problems that no device takes, and what kept all devices from answering."""
    is_interrupted: bool = False
    when_interrupted: str = "what was done by then is shown"

    def read_problems(
        self, paths: Sequence[Path], parameters: Mapping[str, int | float]
    ) -> list[Problem]:
        """Read problem files; of several, those that cannot be read are refused."""
        problems = []
        for path in paths:
            try:
                problems.append(read_problem(path, parameters=parameters))
            except KernelcastError as error:
                if len(paths) == 1:
                    raise
                self.refusals.append(("", error))
        return problems

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Have Ctrl-C end the block, and nothing else."""
        try:
            yield
        except KeyboardInterrupt:
            self.is_interrupted = True

    def conclude(self) -> ExitStatus:
        """Write every error to standard error; give the exit status."""
        for name, error in (*self.failures, *self.refusals):
            complain(f"{name}: {error}" if name else str(error))
        if self.is_interrupted:
            complain(f"interrupted; {self.when_interrupted}")
            return ExitStatus.INTERRUPTED
        refused = (status_of(error) for _, error in self.refusals)
        return max(refused, default=ExitStatus.FAILED if self.failures else ExitStatus.ANSWERED)


def collect_estimates(
    paths: Sequence[Path], parameters: Mapping[str, int | float], settings: EstimateSettings, *,
    device_ids: Sequence[str], timeout_s: float, replay_file: Path | None, report: Report,
) -> tuple[Collected[DeviceAnswer], list[Recording]]:  # fmt: skip
    """Answer every problem, with raw samples; an error ends one problem, Ctrl-C ends all."""
    collected, recorded = Collected[DeviceAnswer](), list[Recording]()
    problems = collected.read_problems(paths, parameters)
    if paths and not problems:
        return collected, recorded

    def ask() -> Iterator[tuple[str, Iterator[RecordedAnswer]]]:
        """Name each problem, with its answers to come."""
        if replay_file is not None:
            from kernelcast.predictor.estimates import replay

            recordings = read_recordings(replay_file)
            wanted: Sequence[Problem | None] = problems or [None]
            for one in wanted:
                name = replay_file.name if one is None else one.name
                yield name, replay(recordings, one, device_ids=device_ids, settings=settings)
            return
        report("reading the source")
        good = []
        for problem in problems:
            try:
                refuse_misfits(problem)
                good.append(problem)
            except KernelcastError as error:
                collected.refusals.append((problem.name, error))
        if not good:
            return
        refuse_unknown_ids(device_ids)
        # Who gave a wrong problem, or a wrong id, has not waited for this import.
        from kernelcast.predictor.estimates import estimate_on_devices, find_devices, import_ahead

        report("looking for devices")
        listing = _run_beside(partial(find_devices, device_ids))
        import_ahead()
        devices = listing.result()
        for number, problem in enumerate(good, start=1):
            yield (
                problem.name,
                estimate_on_devices(
                    problem, devices, settings=settings, timeout_s=timeout_s,
                    report=prefix(report, f"[{number}/{len(good)}] {problem.name} on "),
                ),
            )  # fmt: skip

    with collected.until_interrupted():
        for name, answers in ask():
            failures = len(collected.failures)
            try:
                for one in answers:
                    collected.answers.append(one.answer)
                    if one.answer.error is not None:
                        collected.failures.append((one.answer.problem, one.answer.error))
                    if one.recording is not None:
                        recorded.append(one.recording)
            except KernelcastError as error:
                # What no device takes is said once; the answers hold what each has said.
                del collected.failures[failures:]
                collected.refusals.append((name, error))
    return collected, recorded


def _run_beside(work: Callable[[], T]) -> Future[T]:
    """Have something done in a thread that keeps no program from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
