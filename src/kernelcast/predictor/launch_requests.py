"""What callers ask for becomes launches on devices: problems, and live pyopencl objects."""

import sys
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from kernelcast.launches.devices import choose_devices
from kernelcast.predictor.answering.identity import name_asked
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import Executor, ReportProgress
from kernelcast.predictor.given import check_device, check_device_ids, check_problem, list_launches
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem
from kernelcast.sampling.device_ids import match_device_id

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch

_LIVE = "kernelcast.launches.live"
Pair: TypeAlias = "tuple[Problem | Launch, str | DeviceDescription | None]"


class RequestReader:
    """Reads what callers ask for; threads share one."""

    def __init__(
        self, executor: Executor, devices: Sequence[str | DeviceDescription] | None = None
    ) -> None:
        self._executor = executor
        self._wanted = devices or ()
        self._devices: dict[str, DeviceDescription] = {}
        self._lock = threading.Lock()

    def devices(self) -> tuple[DeviceDescription, ...]:
        """Describe the devices that are asked; drivers are asked once."""
        with self._lock:
            if not self._devices:
                found = [one for one in self._wanted if isinstance(one, DeviceDescription)]
                ids = [one for one in self._wanted if isinstance(one, str)]
                if ids or not found:
                    found += choose_devices(ids, getattr(self._executor, "children", None))
                self._devices = {one.id: one for one in found}
            return tuple(self._devices.values())

    def replace_device(self, device: DeviceDescription) -> None:
        """Take another description of a device, whose driver has changed."""
        with self._lock:
            if device.id in self._devices:
                self._devices[device.id] = device

    def list_pairs(
        self,
        launches: "Iterable[Problem | Launch]",
        devices: Sequence[str | DeviceDescription] | None = None,
    ) -> list[Pair]:
        """List launches and their devices, devices within launches; live ones have one already."""
        check_device_ids(devices)
        listed = list_launches(launches, self.is_live)
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
        remembers: bool = True,
    ) -> LaunchRequest:
        if not self.is_live(launch):
            return LaunchRequest(
                problem=check_problem(launch),
                device=self._describe(check_device(device)),
                policy=policy,
                executor=self._executor,
                report=report,
                name=name_asked(check_problem(launch), device),
                remembers=remembers,
            )
        # Source analysis and a driver: callers with live objects have loaded the one already.
        from kernelcast.launches.live import describe_live
        from kernelcast.predictor.answering.live_objects import LiveObjects

        live = describe_live(launch)
        _check_named(device, live.device)
        return LaunchRequest(
            problem=live.problem,
            device=live.device,
            policy=policy,
            executor=LiveObjects(live),
            report=report,
            is_live=True,
            remembers=remembers,
        )

    def sketch(
        self, launch: "Problem | Launch", device: str | DeviceDescription | None, *, policy: Policy
    ) -> LaunchRequest:
        """Read one launch without asking its device, which may be busy, for anything."""
        if not self.is_live(launch):
            return self.read(launch, device, policy=policy)
        from kernelcast.predictor.answering.live_objects import LiveObjects, sketch_live

        problem, found = sketch_live(launch)
        _check_named(device, found)
        return LaunchRequest(
            problem=problem, device=found, policy=policy, executor=LiveObjects(), is_live=True
        )

    @staticmethod
    def is_live(given: object) -> "TypeGuard[Launch]":
        """Tell a launch of live objects, which needs the module that makes it."""
        module = sys.modules.get(_LIVE)
        return module is not None and isinstance(given, module.Launch)

    def _describe(self, device: str | DeviceDescription) -> DeviceDescription:
        if isinstance(device, DeviceDescription):
            return device
        known = {one.id: one for one in self.devices()}
        return known[match_device_id(device, known)]


def _check_named(device: str | DeviceDescription | None, own: DeviceDescription) -> None:
    """Refuse another device than that of a launch's queue."""
    named = device.id if isinstance(device, DeviceDescription) else device
    if named is not None and not own.id.startswith(named):
        msg = f"device {named}: the launch's queue is on {own.id}; leave the device out"
        raise InputError(msg)
