"""What Python programs call to find the best way to launch a kernel."""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

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

_SCHEMA = "kernelcast-tuning-1"


class MeasurementFile:
    """Builds, runs and refusals by configuration and device, one JSON object a line.

    A last line that was cut off by a full disk or a killed process is dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events: dict[str, list[TuningEvent]] = defaultdict(list)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
        lines = text.splitlines()
        if not lines or _parse(lines[0]).get("schema") != _SCHEMA:
            raise InputError(f"{path}: is no file of tuning measurements; name another file")
        if not text.endswith("\n"):
            path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
        for line in map(_parse, lines[1:]):
            with suppress(KeyError, TypeError, ValueError):
                kind, seconds = EventKind(line["kind"]), float(line["seconds"])
                reason = str(line.get("reason", ""))
                event = TuningEvent(number=0, kind=kind, seconds=seconds, reason=reason)
                self._events[str(line["key"])].append(event)

    def events(self, key: str) -> tuple[TuningEvent, ...]:
        """List what happened to a configuration, under the number 0."""
        return tuple(self._events.get(key, ()))

    def add(self, key: str, event: TuningEvent) -> None:
        """Keep what happened."""
        if event.kind not in (EventKind.BUILT, EventKind.RAN, EventKind.REFUSED):
            return
        line = {"key": key, "kind": event.kind.value, "seconds": event.seconds,
                "reason": event.reason}  # fmt: skip
        is_new = not self.path.exists()
        try:
            make_private_folder(self.path.parent)
            with self.path.open("a", encoding="utf-8") as file:
                if is_new:
                    file.write(json.dumps({"schema": _SCHEMA}) + "\n")
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            msg = f"{self.path}: cannot be written: {error.strerror or error}"
            raise InputError(msg) from error
        self._events[key].append(replace(event, number=0))


def key_of(problem: Problem, device: DeviceDescription, seed: int) -> str:
    """Say what a measurement holds for: kernel, options, sizes, arguments, device, driver."""
    parts = (
        problem.kernel.digest, problem.ndrange, problem.arguments, device.id, device.driver, seed
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _parse(line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


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
    work = _Tuning(
        space=space,
        device=device,
        settings=settings or TuneSettings(),
        save=None if save is None else Path(save),
        report=report,
    )
    known = machine or find_own_machine(device.id)
    if known is None:
        raise InputError(
            f"{device.id}: the device was not calibrated, so no model can rank configurations; "
            f"run `kernelcast calibrate --device {device.id}` first"
        )
    with nullcontext(executor) if executor else several_processes(space) as processes:
        work.rank(known, processes)
    if work.settings.models is TuneModels.HYBRID:
        work.sample()
    if work.settings.measure:
        work.measure()
    return work.finish()


@dataclass(slots=True, kw_only=True)
class _Tuning:
    """One space on one device."""

    space: SearchSpace
    device: DeviceDescription
    settings: TuneSettings
    save: Path | None
    report: Report
    found: dict[int, TunedConfiguration] = field(default_factory=dict)
    spent_s: dict[str, float] = field(default_factory=dict)

    def rank(self, machine: MachineDescription, executor: Executor | None) -> None:
        """Let the analytic model predict all configurations."""
        started_s = time.perf_counter()
        self.found = rank(
            self.space,
            self.device,
            machine,
            executor=executor,
            report=lambda done, total: self._tell("ranking", done, total),
        )
        self.spent_s["ranking"] = time.perf_counter() - started_s

    def sample(self) -> None:
        """Run a few work-groups of the best, and rank those by what they took."""
        chosen, done = self._choose(self.settings.sampled), 0

        def take(event: TuningEvent) -> None:
            nonlocal done
            if event.kind is EventKind.STARTED:
                self._tell("sampling", done, len(chosen))
            else:
                done += 1
                self._take(event)

        self._run("sampling", chosen, {}, take)

    def measure(self) -> None:
        """Measure the best as a whole, in turn; runs of an earlier call count."""
        chosen, runs = self._choose(self.settings.top), self.settings.runs
        keys = {n: key_of(one, self.device, self.settings.seed) for n, one in chosen.items()}
        if not chosen:
            return
        name = f"{next(iter(chosen.values())).name}.jsonl"
        file = MeasurementFile(self.save or data_folder() / "tuning" / self.device.id / name)
        for number, key in keys.items():
            for event in file.events(key):
                if event.kind is not EventKind.RAN or len(self.found[number].runs_s) < runs:
                    self._take(replace(event, number=number))

        def take(event: TuningEvent) -> None:
            file.add(keys[event.number], event)
            self._take(event)
            done = sum(len(self.found[number].runs_s) for number in chosen)
            self._tell("measuring", done, runs * len(chosen))

        missing = {
            number: runs - len(self.found[number].runs_s)
            for number in chosen
            if not self.found[number].obstacle
        }
        missing = {number: count for number, count in missing.items() if count > 0}
        self._run("measuring", {number: chosen[number] for number in missing}, missing, take)

    def _run(
        self,
        stage: str,
        problems: dict[int, Problem],
        runs: dict[int, int],
        take: Callable[[TuningEvent], None],
    ) -> None:
        """Have the device run configurations, or sample them where no runs are given."""
        started_s = time.perf_counter()
        settings = EstimateSettings(seed=self.settings.seed)
        task = TuningTask(device_id=self.device.id, problems=problems, runs=runs, settings=settings)
        run_on_device(task, timeout_s=self.settings.timeout_s, take=take)
        self.spent_s[stage] = time.perf_counter() - started_s

    def finish(self) -> TuneReport:
        """Return what was found."""
        possible = [one for one in self.found.values() if not one.obstacle]
        unknown = [one.limiter for one in possible if one.grade == UNKNOWN]
        noted = [one.note for one in possible if one.note]
        warnings = []
        if unknown:
            reason = unknown[0].removeprefix("not modelled: ")
            warnings.append(
                f"{len(unknown)} configurations have no prediction; the first: {reason}"
            )
        if noted:
            warnings.append(
                f"the model understood {len(noted)} configurations in part; the first: {noted[0]}"
            )
        return TuneReport(
            problem=self.space.name,
            kernel=self.space.kernel,
            device=self.device.name,
            device_id=self.device.id,
            names=self.space.names,
            models=self.settings.models,
            configurations=sort_configurations(self.found),
            models_s=self.spent_s.get("ranking", 0.0),
            sampling_s=self.spent_s.get("sampling", 0.0),
            measuring_s=self.spent_s.get("measuring", 0.0),
            warnings=tuple(warnings),
        )

    def _choose(self, count: int) -> dict[int, Problem]:
        """Return the best configurations as far as is known, best first."""
        possible = (one for one in sort_configurations(self.found) if not one.obstacle)
        best = islice(possible, count)
        return {one.number: one.problem for one in best if one.problem is not None}

    def _take(self, event: TuningEvent) -> None:
        one = self.found[event.number]
        if event.kind is EventKind.RAN:
            one = replace(one, runs_s=(*one.runs_s, event.seconds))
        elif event.kind is EventKind.BUILT:
            one = replace(one, build_s=event.seconds)
        elif event.kind is EventKind.SAMPLED:
            one = replace(one, sampled_s=event.seconds)
        elif event.kind is EventKind.REFUSED:
            one = replace(one, obstacle=event.reason)
        self.found[event.number] = one

    def _tell(self, stage: str, done: int, total: int) -> None:
        self.report(Progress(device_id=self.device.id, stage=stage, done=done, total=total))
