"""What callers ask for becomes launches on devices: problems, and live pyopencl objects."""

import sys
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeGuard

from kernelcast.launches.devices import choose_devices
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import Executor, ReportProgress
from kernelcast.predictor.given import check_device, check_device_ids, check_problem, list_launches
from kernelcast.predictor.launch_estimates import LaunchEstimate
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.problem import Problem
from kernelcast.sampling.device_ids import match_device_id

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch

_LIVE = "kernelcast.launches.live"


class RequestReader:
    """Reads what callers ask for; threads share one.

    Parameters
    ----------
    executor : Executor
        Has devices sample problems; live objects are sampled where they are.
    policy : Policy
        Where the caller names none.
    devices : sequence of str or DeviceDescription, optional
        As of `kernelcast.Predictor`.
    """

    def __init__(
        self,
        executor: Executor,
        policy: Policy,
        devices: Sequence[str | DeviceDescription] | None = None,
    ) -> None:
        self._executor = executor
        self._policy = policy
        self._wanted = devices or ()
        self._devices: dict[str, DeviceDescription] = {}
        self._lock = threading.Lock()

    def devices(self) -> tuple[DeviceDescription, ...]:
        """Describe the devices that are asked; drivers are asked once.

        Raises
        ------
        UnknownDeviceError, NoDeviceError
            If there is no device of an id, or none at all.
        """
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

    def read(
        self,
        launch: "Problem | Launch",
        device: str | DeviceDescription | None = None,
        *,
        policy: Policy | None = None,
        report: ReportProgress = lambda _: None,
    ) -> LaunchRequest:
        """Read one launch on one device.

        Raises
        ------
        InputError
            If it is no launch, does not fit together, or there is no such device.
        """
        policy = policy or self._policy
        if self.is_live(launch):
            return _read_live(launch, device, policy, report)
        return LaunchRequest(
            problem=check_problem(launch),
            device=self._describe(check_device(device)),
            policy=policy,
            executor=self._executor,
            report=report,
        )

    def pair(
        self,
        launches: "Iterable[Problem | Launch]",
        devices: Sequence[str | DeviceDescription] | None = None,
    ) -> list[LaunchRequest | LaunchEstimate]:
        """Read launches on devices, devices within launches; live ones have a device already.

        Returns
        -------
        list of LaunchRequest or LaunchEstimate
            The latter for live launches that cannot be asked for: it says why.

        Raises
        ------
        InputError
            If something is no launch, or there is no such device.
        """
        return [
            self._try_to_read(one) if self.is_live(one) else self.read(one, device)
            for one, device in self.list_pairs(launches, devices)
        ]

    def list_pairs(
        self,
        launches: "Iterable[Problem | Launch]",
        devices: Sequence[str | DeviceDescription] | None = None,
    ) -> "list[tuple[Problem | Launch, DeviceDescription | None]]":
        """List launches and the devices they are asked of, before they are read; see `pair`."""
        check_device_ids(devices)
        listed = list_launches(launches, self.is_live)
        is_any_problem = any(isinstance(one, Problem) for one in listed)
        given = self.devices() if devices is None and is_any_problem else devices or ()
        chosen = [self._describe(one) for one in given]
        return [
            (one, device) for one in listed for device in ([None] if self.is_live(one) else chosen)
        ]

    def _try_to_read(self, launch: "Launch") -> LaunchRequest | LaunchEstimate:
        try:
            return self.read(launch)
        except KernelcastError as error:
            return refuse_live(launch, error)

    def sketch(
        self, launch: "Problem | Launch", device: str | DeviceDescription | None, *, policy: Policy
    ) -> LaunchRequest:
        """Read one launch without asking its device, which may be busy, for anything.

        Raises
        ------
        KernelcastError
            If that cannot be done, for one reason or another.
        """
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
        """Tell a launch of live objects; nobody has one who has not imported what makes it."""
        module = sys.modules.get(_LIVE)
        return module is not None and isinstance(given, module.Launch)

    def _describe(self, device: str | DeviceDescription) -> DeviceDescription:
        if isinstance(device, DeviceDescription):
            return device
        known = {one.id: one for one in self.devices()}
        return known[match_device_id(device, known)]


def _read_live(
    launch: "Launch",
    device: str | DeviceDescription | None,
    policy: Policy,
    report: ReportProgress,
) -> LaunchRequest:
    # Source analysis and a driver: who has live objects has paid for the one, and pays the other.
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
    )


def _check_named(device: str | DeviceDescription | None, own: DeviceDescription) -> None:
    """Refuse another device than that of a launch's queue."""
    named = device.id if isinstance(device, DeviceDescription) else device
    if named is not None and not own.id.startswith(named):
        msg = f"device {named}: the launch's queue is on {own.id}; leave the device out"
        raise InputError(msg)


def refuse_live(launch: "Launch", error: KernelcastError) -> LaunchEstimate:
    """Say why a launch of live objects has no answer."""
    from kernelcast.sampling.user_objects import name_device  # loaded by now

    name = str(getattr(launch.kernel, "function_name", "launch"))
    return LaunchEstimate(problem=name, device_id=name_device(launch.queue), error=error)
