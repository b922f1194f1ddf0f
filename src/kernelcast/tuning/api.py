"""What Python programs call to find the best way to launch a kernel."""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.machines import find_own_machine
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.private_files import make_private_folder
from kernelcast.records.problem import Problem
from kernelcast.records.progress import Progress
from kernelcast.tuning.device_runs import EventKind, TuningEvent, TuningTask, run_on_device
from kernelcast.tuning.ranking import rank, several_processes
from kernelcast.tuning.report import UNKNOWN, TunedConfiguration, TuneReport, sort_configurations
from kernelcast.tuning.settings import TuneModels, TuneSettings
from kernelcast.tuning.space import SearchSpace, read_space

_FIRST_LINE = json.dumps({"schema": "kernelcast-tuning-1"})
_KEPT = (EventKind.BUILT, EventKind.RAN, EventKind.REFUSED)


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
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
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
        """Keep what happened."""
        if event.kind not in _KEPT:
            return
        line = {"key": key, "kind": event.kind.value, "seconds": event.seconds,
                "reason": event.reason}  # fmt: skip
        first = "" if self.path.exists() else f"{_FIRST_LINE}\n"
        try:
            make_private_folder(self.path.parent)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{first}{json.dumps(line)}\n")
        except OSError as error:
            msg = f"{self.path}: cannot be written: {error.strerror or error}"
            raise InputError(msg) from error
        self.events[key].append(replace(event, number=0))


def key_of(problem: Problem, device: DeviceDescription, seed: int) -> str:
    """Say what a measurement holds for: kernel, options, sizes, arguments, device, driver."""
    parts = (
        problem.kernel.digest, problem.ndrange, problem.arguments, device.id, device.driver, seed
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


Report = Callable[[Progress], None]


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
    space = (
        problem if isinstance(problem, SearchSpace) else read_space(problem, parameters=parameters)
    )
    return [
        tune_on_device(space, device, settings=settings, save=save, report=report)
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
    """What is known of the configurations on one device."""

    device: DeviceDescription
    settings: TuneSettings
    report: Report
    found: dict[int, TunedConfiguration] = field(default_factory=dict)

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

    def tell(self, stage: str, done: int, total: int) -> None:
        self.report(Progress(device_id=self.device.id, stage=stage, done=done, total=total))

    def _run(
        self, problems: dict[int, Problem], runs: dict[int, int],
        take: Callable[[TuningEvent], None],
    ) -> float:  # fmt: skip
        """Have the device run configurations, or sample them where no runs are given."""
        started_s = time.perf_counter()
        settings = EstimateSettings(seed=self.settings.seed)
        task = TuningTask(device_id=self.device.id, problems=problems, runs=runs, settings=settings)
        run_on_device(task, timeout_s=self.settings.timeout_s, take=take)
        return time.perf_counter() - started_s

    def _choose(self, count: int) -> dict[int, Problem]:
        """Choose the best configurations as far as is known, best first."""
        possible = (one for one in sort_configurations(self.found) if not one.obstacle)
        best = islice(possible, count)
        return {one.number: one.problem for one in best if one.problem is not None}

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
