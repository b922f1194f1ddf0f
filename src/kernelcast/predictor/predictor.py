"""The predictor: what programs, schedulers and the service ask and tell."""

import itertools
import math
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kernelcast.launches.devices import choose_devices
from kernelcast.launches.own_machine import find_own_machine
from kernelcast.predictor.answering.answerer import Answerer
from kernelcast.predictor.answering.launch_history import Seen
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.methods import choose_methods
from kernelcast.predictor.answering.shelf import ModelShelf
from kernelcast.predictor.answering.transfers import estimate_transfers
from kernelcast.predictor.answering.writer import ObservationWriter
from kernelcast.predictor.given import (
    check_device,
    check_device_ids,
    check_identity,
    check_number,
    check_problem,
    list_problems,
)
from kernelcast.predictor.known_launches import KnownLaunch
from kernelcast.predictor.launch_answers import LaunchAnswers
from kernelcast.predictor.launch_estimates import (
    FastestLaunch,
    LaunchEstimate,
    choose_fastest,
    compare_estimates,
)
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.predictor.shadow import ShadowRecord
from kernelcast.predictor.told_before import ToldBefore
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.machine import MachineDescription
from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import RunTimes
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import match_device_id
from kernelcast.sampling.plan import SAMPLER

if TYPE_CHECKING:
    from kernelcast.training_data.store import Store

_RECHECK_S = 5.0


class Predictor:
    """Predicts launches, remembers the answers, and learns from what they really took.

    Parameters
    ----------
    devices : sequence of str or DeviceDescription, optional
        Ids of devices, or their beginnings; all devices of this machine when left out.
    methods : sequence of str, optional
        Which methods answer or stand beside the answer: ``history``, ``hybrid``, ``linear``,
        ``analytic``, ``two_point``, ``pooled_rate``, and other models of the registry by name; all
        but the last when left out. The best tier among them answers.
    shadow : str, optional
        A method that is computed silently; `shadow_records` says how it did.
    store : Store, str or Path, optional
        Where observations are kept; the user's own store when left out.
    registry : str, optional
        Folder or URL of trained models; the user's own when left out.
    options : PredictorOptions, optional
        Settings and what few programs change.

    Raises
    ------
    InputError
        If no method would answer.

    Notes
    -----
    Threads share one predictor. A launch that was answered is answered again from memory, without
    a lock, until it is observed, its times shift, or another version of a model is published. One
    sampling at a time runs on a device. Close it, or use it as a context manager, so that all
    observations are written.

    Examples
    --------
    >>> from kernelcast.predictor.predictor import Predictor
    >>> with Predictor() as predictor:  # doctest: +SKIP
    ...     estimate = predictor.estimate(problem, "pocl")
    ...     predictor.observe(estimate, measured_s=0.12)
    """

    def __init__(  # noqa: PLR0913 - each says where something comes from
        self,
        devices: Sequence[str | DeviceDescription] | None = None,
        methods: Sequence[str] | None = None,
        shadow: str | None = None,
        store: "Store | str | Path | None" = None,
        registry: str | None = None,
        *,
        options: PredictorOptions | None = None,
    ) -> None:
        check_device_ids(devices)
        self._options = options = options or PredictorOptions()
        self._memory = Memory(store)
        self._answerer = Answerer(
            settings=options.settings,
            shelf=ModelShelf(registry, clock=options.clock),
            memory=self._memory,
            asker=options.asker,
            facts_store=options.choose_facts_store(),
            methods=choose_methods(methods, shadow),
            timeout_s=options.timeout_s,
        )
        self._wanted = devices
        self._devices: dict[str, DeviceDescription] = {}
        self._answers = LaunchAnswers(self._answerer, self._take_driver)
        self._writer = ObservationWriter(lambda: self._memory.open(may_create=True))
        self._lock = threading.RLock()
        self._clock = options.clock
        self._recheck_s = 0.0
        self._generation = 0
        self._told = ToldBefore()
        self._run, self._number = uuid.uuid4().hex, itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def devices(self) -> tuple[DeviceDescription, ...]:
        """Describe the devices that are asked.

        Raises
        ------
        UnknownDeviceError, NoDeviceError
            If there is no device of an id, or none at all.
        """
        with self._lock:
            if not self._devices:
                given = self._wanted or ()
                found = [one for one in given if isinstance(one, DeviceDescription)]
                ids = [one for one in given if isinstance(one, str)]
                if ids or not found:
                    found += choose_devices(ids)
                self._devices = {one.id: one for one in found}
            return tuple(self._devices.values())

    def estimate(self, problem: Problem, device: str | DeviceDescription) -> Estimate:
        """Predict one launch on one device.

        Parameters
        ----------
        problem : Problem
            The launch; see `kernelcast.launches.problem_file.read_problem`.
        device : str or DeviceDescription
            The device, or its id.

        Raises
        ------
        InputError
            If source and arguments do not fit together, or there is no such device.
        DeviceError
            If the device cannot answer.
        """
        check_device(device)
        device_id = device if isinstance(device, str) else device.id
        if self._clock() >= self._recheck_s:
            self._look_for_models()
        answer = self._answers.launches.recall_answer(problem, device_id)
        if answer is not None:
            return answer
        check_problem(problem)
        description = self._describe(device)
        known = self._answers.ask(problem, description)
        return self._answers.require(known, problem, description)

    def estimate_many(
        self,
        launches: Iterable[Problem],
        devices: Sequence[str | DeviceDescription] | None = None,
    ) -> list[LaunchEstimate]:
        """Predict every launch on every device, with all that it costs.

        Parameters
        ----------
        launches : iterable of Problem
            The launches.
        devices : sequence of str or DeviceDescription, optional
            The devices; all of the predictor's when left out.

        Returns
        -------
        list of LaunchEstimate
            One per pair, devices within launches. A device that cannot answer says so in its
            entry. Learned models are asked once for all launches that are new to them.
        """
        self._look_for_models()
        launches = list_problems(launches)
        check_device_ids(devices)
        chosen = self.devices() if devices is None else [self._describe(one) for one in devices]
        pairs = [(problem, device) for problem in launches for device in chosen]
        machines: dict[str, MachineDescription | None] = {
            one.id: _find_machine(one.id) for one in chosen
        }
        errors: dict[int, KernelcastError] = {}
        found: dict[int, KnownLaunch] = {}
        for place, (problem, device) in enumerate(pairs):
            try:
                found[place] = self._answers.ask(problem, device, composes=False)
            except KernelcastError as error:
                errors[place] = error
        self._answers.compose_all([(*pairs[place], known) for place, known in found.items()])
        return [
            self._weigh(problem, device, found.get(place), errors.get(place), machines[device.id])
            for place, (problem, device) in enumerate(pairs)
        ]

    @staticmethod
    def faster(one: Estimate, other: Estimate) -> float:
        """Give the probability that the first launch takes less time than the second.

        Times of the kernels alone are compared: see `fastest` for those with transfers.
        Both times are taken as log-normal and independent, see
        `kernelcast.predictor.launch_estimates.compare_estimates`.
        """
        return compare_estimates(one, other)

    @staticmethod
    def fastest(entries: Sequence[LaunchEstimate]) -> FastestLaunch:
        """Choose a launch's device by what is known of all of them.

        See `kernelcast.predictor.launch_estimates.choose_fastest`.
        """
        return choose_fastest(entries)

    def observe(
        self,
        launch: Estimate | LaunchIdentity,
        measured_s: float,
        *,
        is_first: bool | None = None,
        key: str = "",
    ) -> frozenset[ObservationFlag]:
        """Tell how long a launch has really taken.

        Parameters
        ----------
        launch : Estimate or LaunchIdentity
            The launch: an answer of this predictor, or its identity.
        measured_s : float
            Time of the whole kernel on the device, in seconds.
        is_first : bool, optional
            Whether it was the kernel's first launch with this local size in its process, which may
            hold compilation; by default what this predictor is told first of a kernel counts so.
        key : str
            Tells observations apart: of several with the same key only the first counts. Given
            one of its own when left out.

        Returns
        -------
        frozenset of ObservationFlag
            First launches are kept apart, what sticks out is tagged, what contradicts samples,
            physics or other observations is doubted until it repeats. None of these changes the
            time that is answered; doubts stand in its warnings.

        Raises
        ------
        InputError
            If the time is not positive, or the launch has no identity.
        ObservationLostError
            If it cannot be kept.
        """
        identity = launch.identity if isinstance(launch, Estimate) else launch
        if identity is None:
            msg = (
                "the estimate has no identity: contents of its arguments are not known; give a "
                "LaunchIdentity"
            )
            raise InputError(msg)
        check_identity(identity)
        check_number("measured time", measured_s)
        if not 0 < measured_s < math.inf:
            msg = f"measured time {measured_s} s: give positive seconds"
            raise InputError(msg)
        if key and not self._told.take_key(key):
            return frozenset()
        is_new = self._told.is_first(identity)
        one = Observation(
            launch=identity,
            runs=RunTimes(median_s=float(measured_s), durations_s=(float(measured_s),)),
            origin=Origin.OBSERVED,
            measurement=key or f"{self._run}-{next(self._number)}",
            versions=_list_versions(),
            measured_at=datetime.now(UTC),
        )
        seen = Seen(
            key=one.key,
            seconds=one.seconds,
            when=one.measured_at,
            is_first=is_new if is_first is None else is_first,
        )
        flags = self._answers.take(self._answers.launches.find(identity), seen)
        self._writer.add(replace(one, flags=flags))
        return flags

    def flush(self, timeout_s: float = 30.0) -> None:
        """Wait until every observation so far is in the store.

        Raises
        ------
        ObservationLostError
            If the store has not taken them within the time.
        """
        self._writer.flush(timeout_s)

    def close(self, timeout_s: float = 30.0) -> None:
        """Write what waits, and take no more observations.

        Raises
        ------
        ObservationLostError
            If the store has not taken all within the time.
        """
        try:
            self._writer.close(timeout_s)
        finally:
            self._memory.close()
            self._options.end_children()

    def shadow_records(self) -> list[ShadowRecord]:
        """Say how the method in the shadow did, observation by observation."""
        return self._answers.shadow.list_all()

    def _describe(self, device: str | DeviceDescription) -> DeviceDescription:
        if isinstance(device, DeviceDescription):
            return device
        known = {one.id: one for one in self.devices()}
        return known[match_device_id(device, known)]

    def _look_for_models(self) -> None:
        """Make answers anew for which another version of a model is to be used."""
        now_s = self._clock()
        if now_s < self._recheck_s:
            return
        with self._lock:
            self._recheck_s = now_s + _RECHECK_S
            generation = self._answerer.shelf.refresh()
            if generation == self._generation:
                return
            self._generation = generation
            self._answers.renew()

    def _weigh(
        self,
        problem: Problem,
        device: DeviceDescription,
        known: KnownLaunch | None,
        error: KernelcastError | None,
        machine: MachineDescription | None,
    ) -> LaunchEstimate:
        """Put the answer and everything else that a launch costs together."""
        if known is None:
            return LaunchEstimate(problem=problem.name, device_id=device.id, error=error)
        estimate = self._answers.require(known, problem, device)
        accesses = known.outcome.accesses if known.outcome else ()
        transfers = estimate_transfers(problem, accesses, machine)
        launch_s = estimate.launch_seconds
        if launch_s is None and machine is not None and "launch_s" in machine.costs:
            launch_s = machine.costs["launch_s"].value
        return LaunchEstimate(
            problem=problem.name,
            device_id=device.id,
            estimate=estimate,
            compile_s=estimate.compile_seconds,
            launch_s=launch_s,
            to_device_s=transfers.to_device_s if transfers else None,
            from_device_s=transfers.from_device_s if transfers else None,
        )

    def _take_driver(self, device: DeviceDescription) -> None:
        """Forget what another driver of the device has done."""
        with self._lock:
            if device.id in self._devices:
                self._devices[device.id] = device
        self._answers.launches.forget_device(device.id)


@cache
def _list_versions() -> Mapping[str, str]:
    return {"kernelcast": version("kernelcast"), "sampler": str(SAMPLER)}


def _find_machine(device_id: str) -> MachineDescription | None:
    """Give the calibrated description; one that cannot be read costs transfers, not answers."""
    try:
        return find_own_machine(device_id)
    except KernelcastError:
        return None
