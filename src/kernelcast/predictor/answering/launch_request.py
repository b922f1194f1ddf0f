"""What is asked: one launch on one device, and what its answer may be made of."""

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeGuard

from kernelcast.launches.devices import choose_devices
from kernelcast.predictor.answering.policy import Policy, TimeLimit
from kernelcast.predictor.answering.processes import (
    EstimateOutcome,
    Executor,
    ReportProgress,
    WarmProcesses,
)
from kernelcast.records.device import DeviceDescription, match_device_id
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import Tier
from kernelcast.records.problem import LaunchIdentity, Problem, digest_arguments, identify_launch

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch

INSTRUCTIONS = "instructions"
"""Parameter of an identity: how many a launch executes by its source, see `count_work`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    problem: Problem
    device: DeviceDescription
    policy: Policy
    executor: Executor
    progress: ReportProgress = lambda _: None
    is_live: bool = False
    """Whether it holds a program's own objects, and must not outlive the call."""
    limit: TimeLimit | None = None
    remembers: bool = True
    """Whether what is found out is remembered; else the launch is answered anew."""
    arguments_digest: str = ""
    """Made once: whole files are read for it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", self.problem.on(self.device))
        if not self.arguments_digest:
            found = digest_arguments(self.problem.arguments, seed=self.policy.settings.seed)
            object.__setattr__(self, "arguments_digest", found)

    def identify(self) -> LaunchIdentity:
        """Say what the launch is remembered under."""
        problem, policy = self.problem, self.policy
        parameters: dict[str, float] = {}
        if problem.ndrange.local_size is not None:
            device_id = self.device.id if policy.settings.samples else ""
            counted = self.executor.count_work(problem, device_id, asks=policy.uses(Tier.SIZES))
            parameters = {} if counted is None else {INSTRUCTIONS: counted}
        return identify_launch(
            problem, self.device, seed=policy.settings.seed, parameters=parameters,
            arguments_digest=self.arguments_digest,
        )  # fmt: skip

    def report(self, stage: str) -> None:
        """Tell of a stage that begins, unless time is over: a `NoAnswerYetError`."""
        if self.limit is not None:
            self.limit.note(stage)
        self.progress(stage)

    def as_run(self, outcome: EstimateOutcome) -> "LaunchRequest":
        """Give the launch as a sampling ran it: local size chosen, driver as it is."""
        ran = outcome.recording.device
        if ran == self.device and outcome.estimate.ndrange == self.problem.ndrange:
            return self
        return replace(
            self,
            problem=replace(self.problem, ndrange=outcome.estimate.ndrange),
            device=ran if ran.id == self.device.id else self.device,
        )


def refuse(name: str, given: object, wanted: str) -> NoReturn:
    """Say what to give where a caller's value is of another kind than the one that is meant."""
    if isinstance(given, DeviceDescription):
        given = given.id
    what = repr(str(given)) if isinstance(given, str | Path) else type(given).__name__
    raise InputError(f"{name}: {what} given; give {wanted}")


def check_device_ids(given: object) -> None:
    """Refuse one id where several are meant: its letters would be taken for ids."""
    if isinstance(given, str | DeviceDescription):
        refuse("devices", given, "a sequence of ids, also of one")


def check_problem(given: object) -> Problem:
    if not isinstance(given, Problem):
        wanted = "a Problem, which kernelcast.read_problem(path) reads, or a kernelcast.Launch"
        refuse("problem", given, f"{wanted} of pyopencl objects")
    return given


Pair: TypeAlias = "tuple[Problem | Launch, str | DeviceDescription | None]"


class RequestReader:
    def __init__(
        self, executor: Executor, devices: Sequence[str | DeviceDescription] | None = None
    ) -> None:
        self._executor = executor
        self._wanted = devices or ()
        self._devices: dict[str, DeviceDescription] = {}
        self._lock = threading.Lock()

    def devices(self) -> tuple[DeviceDescription, ...]:
        with self._lock:
            if not self._devices:
                found = [one for one in self._wanted if isinstance(one, DeviceDescription)]
                ids = [one for one in self._wanted if isinstance(one, str)]
                if ids or not found:
                    executor = self._executor
                    children = executor.children if isinstance(executor, WarmProcesses) else None
                    found += choose_devices(ids, children)
                self._devices = {one.id: one for one in found}
            return tuple(self._devices.values())

    def replace_device(self, device: DeviceDescription) -> None:
        with self._lock:
            if device.id in self._devices:
                self._devices[device.id] = device

    def list_pairs(
        self,
        listed: "Sequence[Problem | Launch]",
        devices: Sequence[str | DeviceDescription] | None,
    ) -> list[Pair]:
        """List launches and their devices, devices within launches; live ones have one already."""
        is_any_problem = any(isinstance(one, Problem) for one in listed)
        given = self.devices() if devices is None and is_any_problem else devices or ()
        chosen = [self._describe(one) for one in given]
        return [
            (one, device) for one in listed for device in ([None] if self.is_live(one) else chosen)
        ]

    def read(
        self,
        launch: "Problem | Launch",
        device: str | DeviceDescription | None = None,
        *,
        policy: Policy,
        report: ReportProgress = lambda _: None,
        limit: TimeLimit | None = None,
        remembers: bool = True,
        asks_device: bool = True,
    ) -> LaunchRequest:
        """Read one launch, of live objects also without asking their device, which may be busy."""
        executor = self._executor
        if self.is_live(launch):
            # Source analysis and a driver: callers with live objects have loaded the one already.
            from kernelcast.launches.live import describe_live
            from kernelcast.predictor.answering.measuring import LiveObjects, sketch_live

            live = describe_live(launch) if asks_device else None
            told = (live.problem, live.session.description) if live else sketch_live(launch)
            problem, own = told
            named = device.id if isinstance(device, DeviceDescription) else device
            if named is not None and not own.id.startswith(named):
                msg = f"device {named}: the launch's queue is on {own.id}; leave the device out"
                raise InputError(msg)
            executor = LiveObjects(live)
        else:
            if not isinstance(device, str | DeviceDescription):
                refuse("device", device, "an id, or its beginning: `kernelcast devices` lists them")
            problem, own = check_problem(launch), self._describe(device)
        return LaunchRequest(
            problem=problem,
            device=own,
            policy=policy,
            executor=executor,
            progress=report,
            is_live=self.is_live(launch),
            limit=limit,
            remembers=remembers,
        )

    @staticmethod
    def is_live(given: object) -> "TypeGuard[Launch]":
        module = sys.modules.get("kernelcast.launches.live")
        return module is not None and isinstance(given, module.Launch)

    def _describe(self, device: str | DeviceDescription) -> DeviceDescription:
        if isinstance(device, DeviceDescription):
            return device
        known = {one.id: one for one in self.devices()}
        return known[match_device_id(device, known)]
