"""Finds the best way to launch a kernel: ranks by models, samples and measures on devices."""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from kernelcast.features.analysis import infer_accesses
from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.machines import find_own_machine
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.launches.source_check import refuse_persistent
from kernelcast.records.device import DeviceDescription, Progress
from kernelcast.records.errors import (
    EstimateTimeoutError,
    InputError,
    KernelcastError,
    KernelRunError,
)
from kernelcast.records.machine import MachineDescription
from kernelcast.records.private_files import make_private_folder, writing
from kernelcast.records.problem import Problem
from kernelcast.records.yaml_files import read_text
from kernelcast.sampling.problems import prepare_whole
from kernelcast.sampling.session import open_device
from kernelcast.tuning.ranking import rank, several_processes
from kernelcast.tuning.report import (
    UNKNOWN,
    TunedConfiguration,
    TuneModels,
    TuneReport,
    TuneSettings,
    sort_configurations,
)
from kernelcast.tuning.space import SearchSpace, read_space
from kernelcast.workers import Reporter, Task, stream_isolated

_FIRST_LINE = json.dumps({"schema": "kernelcast-tuning-1"})
Report = Callable[[Progress], None]


class EventKind(StrEnum):
    """What happened to a configuration."""

    STARTED = "started"
    """It is being built; told first, so that it is known what a driver died of."""
    BUILT = "built"
    """Built and run once; `seconds` is what that took on the host."""
    RAN = "ran"
    """Run once more as a whole; `seconds` is its time."""
    SAMPLED = "sampled"
    """A few work-groups ran; `seconds` is the estimate of the whole launch."""
    REFUSED = "refused"
    """The device does not take it; `reason` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningEvent:
    """What happened to a configuration."""

    number: int
    kind: EventKind
    seconds: float = 0.0
    reason: str = ""
    cpu_s: float = 0.0
    """Of a build or run: time of all threads of the process that did it, in seconds. On a CPU
    device and a machine that others use as well, it says more than the time that passed."""


class MeasurementFile:
    """Builds, runs and refusals by configuration and device, one JSON object a line.

    A last line that was cut off by a full disk or a killed process is dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: dict[str, list[TuningEvent]] = defaultdict(list)
        """What happened to configurations by their keys, under the number 0."""
        if not path.exists():
            return
        text = read_text(path, "file of tuning measurements")
        first, *lines = text.splitlines() or [""]
        if first != _FIRST_LINE:
            raise InputError(f"{path}: is no file of tuning measurements; name another file")
        if not text.endswith("\n"):
            path.write_text("\n".join([first, *lines[:-1], ""]), encoding="utf-8")
        for line in lines:
            with suppress(KeyError, TypeError, ValueError):
                content = json.loads(line)
                key, kind = content.pop("key"), EventKind(content.pop("kind"))
                self.events[key].append(TuningEvent(number=0, kind=kind, **content))

    def add(self, key: str, event: TuningEvent) -> None:
        """Keep builds, runs and refusals."""
        if event.kind in {EventKind.STARTED, EventKind.SAMPLED}:
            return
        line = {"key": key, "kind": event.kind.value, "seconds": event.seconds,
                "reason": event.reason}  # fmt: skip
        first = "" if self.path.exists() else f"{_FIRST_LINE}\n"
        with writing(self.path, "the file of tuning measurements"):
            make_private_folder(self.path.parent)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{first}{json.dumps(line)}\n")
        self.events[key].append(replace(event, number=0))


def key_of(problem: Problem, device: DeviceDescription, seed: int) -> str:
    """Say what a measurement holds for: kernel, options, sizes, arguments, device, driver."""
    parts = (
        problem.kernel.digest, problem.ndrange, problem.arguments, device.id, device.driver, seed
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def tune(
    problem: str | Path | SearchSpace,
    devices: Sequence[str] = (),
    *,
    parameters: Mapping[str, int | float] | None = None,
    settings: TuneSettings | None = None,
    save: str | Path | None = None,
    report: Report = lambda _: None,
) -> list[TuneReport]:
    """Find the best launch configuration of a problem on each device.

    Parameters
    ----------
    problem : str, Path or SearchSpace
        A problem file with lists of values among its parameters, or its configurations.
    devices : sequence of str
        Ids or beginnings of ids; all devices when left out.
    parameters : mapping of str to number, optional
        Values that replace those of the file's `parameters`, lists included.
    settings : TuneSettings, optional
        What ranks, whether and how much is measured.
    save : str or Path, optional
        File where measured runs are kept and from where they are taken up again; one in the
        user's data folder when left out.
    report : callable, optional
        Is told where it stands.

    Returns
    -------
    list of TuneReport
        One per device.

    Raises
    ------
    InputError
        If the problem cannot be used, or a device was not calibrated.
    DeviceError
        If a device fails.

    Notes
    -----
    `KeyboardInterrupt` passes through; what was measured is in the file and is taken up by the
    next call.
    """
    if not isinstance(problem, SearchSpace):
        problem = read_space(problem, parameters=parameters)
    return [
        tune_on_device(problem, device, settings=settings, save=save, report=report)
        for device in choose_devices(devices)
    ]


def tune_on_device(
    space: SearchSpace,
    device: DeviceDescription,
    *,
    settings: TuneSettings | None = None,
    machine: MachineDescription | None = None,
    save: str | Path | None = None,
    executor: Executor | None = None,
    report: Report = lambda _: None,
) -> TuneReport:
    """Find the best launch configuration on one device."""
    known = machine or find_own_machine(device.id)
    if known is None:
        raise InputError(
            f"{device.id}: the device was not calibrated, so no model can rank configurations; "
            f"run `kernelcast calibrate --device {device.id}` first"
        )
    work = _Tuning(device=device, settings=settings or TuneSettings(), report=report)
    started_s = time.perf_counter()
    with nullcontext(executor) if executor else several_processes(space) as processes:
        tell = partial(work.tell, "ranking")
        work.found = rank(space, device, known, executor=processes, report=tell)
    models_s = time.perf_counter() - started_s
    sampling_s = work.sample() if work.settings.models is TuneModels.HYBRID else 0.0
    measuring_s = work.measure(save) if work.settings.measure else 0.0
    possible = [one for one in work.found.values() if not one.obstacle]
    unknown = [one.limiter for one in possible if one.grade == UNKNOWN]
    noted = [one.note for one in possible if one.note]
    warnings = []
    if unknown:
        reason = unknown[0].removeprefix("not modelled: ")
        warnings.append(f"{len(unknown)} configurations have no prediction; the first: {reason}")
    if noted:
        warnings.append(
            f"the model understood {len(noted)} configurations in part; the first: {noted[0]}"
        )
    return TuneReport(
        problem=space.name, kernel=space.kernel, device=device.name, device_id=device.id,
        names=space.names, models=work.settings.models,
        configurations=sort_configurations(work.found), models_s=models_s, sampling_s=sampling_s,
        measuring_s=measuring_s, warnings=tuple(warnings),
    )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class _Tuning:
    device: DeviceDescription
    settings: TuneSettings
    report: Report
    found: dict[int, TunedConfiguration] = field(default_factory=dict)

    def tell(self, stage: str, done: int, total: int) -> None:
        self.report(Progress(device_id=self.device.id, stage=stage, done=done, total=total))

    def sample(self) -> float:
        """Run a few work-groups of the best, which rank them; return the seconds it took."""
        chosen, done = self._choose(self.settings.sampled), 0

        def take(event: TuningEvent) -> None:
            nonlocal done
            if event.kind is EventKind.STARTED:
                self.tell("sampling", done, len(chosen))
            else:
                done += 1
                self._take(event)

        return self._run(chosen, {}, take)

    def measure(self, save: str | Path | None) -> float:
        """Measure the best as a whole, in turn; runs of an earlier call count."""
        chosen, runs = self._choose(self.settings.top), self.settings.runs
        if not chosen:
            return 0.0
        keys = {n: key_of(one, self.device, self.settings.seed) for n, one in chosen.items()}
        name = f"{next(iter(chosen.values())).name}.jsonl"
        file = MeasurementFile(Path(save or data_folder() / "tuning" / self.device.id / name))
        for number, key in keys.items():
            for event in file.events[key]:
                if event.kind is not EventKind.RAN or len(self.found[number].runs_s) < runs:
                    self._take(replace(event, number=number))

        def take(event: TuningEvent) -> None:
            file.add(keys[event.number], event)
            self._take(event)
            done = sum(len(self.found[number].runs_s) for number in chosen)
            self.tell("measuring", done, runs * len(chosen))

        missing = {
            number: runs - len(self.found[number].runs_s)
            for number in chosen
            if not self.found[number].obstacle and len(self.found[number].runs_s) < runs
        }
        return self._run({number: chosen[number] for number in missing}, missing, take)

    def _run(
        self, problems: dict[int, Problem], runs: dict[int, int],
        take: Callable[[TuningEvent], None],
    ) -> float:  # fmt: skip
        started_s, seed = time.perf_counter(), self.settings.seed
        timeout_s = self.settings.timeout_s
        run_on_device(self.device.id, problems, runs, seed=seed, timeout_s=timeout_s, take=take)
        return time.perf_counter() - started_s

    def _choose(self, count: int) -> dict[int, Problem]:
        """Choose the best configurations as far as is known, best first."""
        possible = [one for one in sort_configurations(self.found) if not one.obstacle]
        return {one.number: one.problem for one in possible[:count] if one.problem is not None}

    def _take(self, event: TuningEvent) -> None:
        one = self.found[event.number]
        match event.kind:
            case EventKind.RAN:
                one = replace(one, runs_s=(*one.runs_s, event.seconds))
            case EventKind.BUILT:
                one = replace(one, build_s=event.seconds)
            case EventKind.SAMPLED:
                one = replace(one, sampled_s=event.seconds)
            case EventKind.REFUSED:
                one = replace(one, obstacle=event.reason)
        self.found[event.number] = one


_TUNE: Task[None] = Task(entry="kernelcast.tuning.api:run_tuning", gives=TuningEvent)


def run_on_device(
    device_id: str, problems: Mapping[int, Problem], runs: Mapping[int, int], *, seed: int,
    timeout_s: float, take: Callable[[TuningEvent], None],
) -> None:  # fmt: skip
    """Run configurations so often in child processes, or sample them where no runs are given.

    One that a child dies of, or says nothing of for `timeout_s`, is refused; another goes on.
    """
    left, missing = dict(problems), dict(runs)
    while left:
        current: int | None = None
        order = (device_id, dict(left), dict(missing), seed)
        event: TuningEvent
        try:
            for event in stream_isolated(_TUNE, order, timeout_s=timeout_s, subject=device_id):
                if event.kind is EventKind.STARTED:
                    current = event.number
                elif event.kind is EventKind.RAN:
                    missing[event.number] -= 1
                is_last = event.kind in {EventKind.SAMPLED, EventKind.REFUSED}
                if is_last or missing.get(event.number) == 0:
                    left.pop(event.number, None)
                take(event)
        except (KernelRunError, EstimateTimeoutError) as error:
            if current is None:
                raise
            left.pop(current, None)
            take(TuningEvent(number=current, kind=EventKind.REFUSED, reason=str(error)))
        else:
            return


def run_tuning(
    order: tuple[str, dict[int, Problem], dict[int, int], int], report: Reporter
) -> None:
    """Do what `run_on_device` orders, in a child process; events are given as they happen."""
    device_id, problems, runs, seed = order
    report("opening the device")
    session = open_device(device_id)
    launches: dict[int, Callable[[], tuple[float, float]]] = {}

    def sample(number: int) -> tuple[float, float]:
        problem = problems[number].on(session.description)
        refuse_persistent(problem.kernel)
        with prepared_launch(session, problem, seed=seed) as launch:
            settings = EstimateSettings(seed=seed)
            found, _ = sample_launch(launch, problem.kernel.name, settings)
        return found.seconds, 0.0

    def build(number: int) -> tuple[float, float]:
        started_s, used_s = time.perf_counter(), time.process_time()
        problem = problems[number].on(session.description)
        accesses = infer_accesses(problem.kernel, len(problem.arguments))
        launch = prepare_whole(session, problem, accesses, seed=seed)
        launch()
        launches[number] = launch
        return time.perf_counter() - started_s, time.process_time() - used_s

    def attempt(number: int, kind: EventKind, act: Callable[[], tuple[float, float]]) -> None:
        """Give what acting, or its refusal, comes to: its seconds, and those of the processor."""
        tell = partial(TuningEvent, number=number)
        report.give(tell(kind=EventKind.STARTED))
        try:
            seconds, cpu_s = act()
        except KernelcastError as error:
            report.give(tell(kind=EventKind.REFUSED, reason=str(error)))
        else:
            report.give(tell(kind=kind, seconds=seconds, cpu_s=cpu_s))

    with session.lock:
        for number in problems:
            kind, act = (EventKind.BUILT, build) if runs else (EventKind.SAMPLED, sample)
            attempt(number, kind, partial(act, number))
        # In turn: what slows the machine down for a while slows all.
        for turn in range(max(runs.values(), default=0)):
            for number in [one for one in launches if runs[one] > turn]:
                attempt(number, EventKind.RAN, launches[number])
