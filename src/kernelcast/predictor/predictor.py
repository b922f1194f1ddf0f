"""The predictor: what programs, schedulers, the command line and the service ask and tell."""

import asyncio
import itertools
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cachetools import LRUCache

from kernelcast.launches.machines import find_sound_machine
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.predictor.answering.launch_history import LaunchHistory, doubt_launch, see
from kernelcast.predictor.answering.launch_request import (
    RequestReader,
    check_device_ids,
    check_problem,
    refuse,
)
from kernelcast.predictor.answering.memory import Answer, Memory, SamplesStore
from kernelcast.predictor.answering.policy import Policy, TimeLimit
from kernelcast.predictor.answering.processes import Executor, ReportProgress, WarmProcesses
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.predictor.answers import Answers, Foretell
from kernelcast.predictor.background import AskedLaunch, Asker, ObservationWriter, Refiner
from kernelcast.predictor.launch_estimates import (
    FastestLaunch,
    LaunchEstimate,
    choose_fastest,
    compare_estimates,
    estimate_transfers,
)
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.observation import (
    MachineState,
    Observation,
    ObservationFlag,
    Origin,
    RunTimes,
)
from kernelcast.records.problem import LaunchIdentity, Problem
from kernelcast.sampling.host import METER, ContentionMeter, read_load
from kernelcast.sampling.plan import SAMPLER

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch
    from kernelcast.sampling.user_objects import UserEvent
    from kernelcast.training_data.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorOptions:
    """What few programs change."""

    settings: EstimateSettings = field(default_factory=EstimateSettings)
    """Budget, coverage, what may be used."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Time limit of one sampling, build included, in seconds."""
    executor: Executor = field(default_factory=WarmProcesses)
    """Has devices sample: each device in a process of its own unless another is given."""
    samples_store: SamplesStore | None = field(default_factory=SamplesStore)
    """Where samples of launches are kept for other processes: in the data folder, nowhere if None
    or where the executor samples on no device of this machine."""
    foretell: Foretell | None = None
    """A model of one's own that needs no samples: gives the seconds of a problem on a device, or
    None. It counts where an evidence model knows its errors."""
    clock: Callable[[], float] = time.monotonic
    """Gives seconds; for tests."""

    def choose_meter(self) -> ContentionMeter | None:
        """Give what measures other programs: callers of a service run launches who knows where."""
        return METER if isinstance(self.executor, WarmProcesses) else None

    def end_children(self) -> None:
        """End the processes that samplings of this predictor have started."""
        if isinstance(self.executor, WarmProcesses):
            self.executor.close()


class Predictor:
    """Predicts launches, remembers the answers, and learns from what they really took.

    Parameters
    ----------
    devices : sequence of str or DeviceDescription, optional
        Ids of devices, or their beginnings; all devices of this machine when left out.
    methods : sequence of str, optional
        Which methods answer or stand beside the answer: tiers, ``two_point``, ``pooled_rate``, and
        other models of the registry by name; all but the last when left out.
    store : Store, str or Path, optional
        Where observations are kept; the user's own store when left out.
    registry : str, optional
        Folder or URL of trained models; the user's own when left out.
    refines : bool
        Whether launches are sampled again where their device idles: the next answer is better.
    options : PredictorOptions, optional
        Settings and what few programs change.

    Raises
    ------
    InputError
        If no method would answer.

    Notes
    -----
    Threads share one predictor. A launch that was answered is answered again from memory, until it
    is observed, or another version of a model is published. One sampling at a time runs on a
    device. Close it, or use it as a context manager, so that all
    observations are written.

    Examples
    --------
    >>> from kernelcast.predictor.predictor import Predictor
    >>> with Predictor() as predictor:  # doctest: +SKIP
    ...     estimate = predictor.estimate(problem, "pocl")
    ...     predictor.observe(estimate, measured_s=0.12)
    """

    def __init__(
        self,
        devices: Sequence[str | DeviceDescription] | None = None,
        methods: Sequence[str] | None = None,
        store: "Store | str | Path | None" = None,
        registry: str | None = None,
        *,
        refines: bool = False,
        options: PredictorOptions | None = None,
    ) -> None:
        check_device_ids(devices)
        self._options = options = options or PredictorOptions()
        self._policy = Policy(
            settings=options.settings,
            methods=None if methods is None else frozenset(methods),
            timeout_s=options.timeout_s,
        )
        self._memory = Memory(store)
        self._models = TrainedModels(registry, clock=options.clock)
        self._reader = RequestReader(options.executor, devices)
        self._answers = Answers(
            policy=self._policy,
            trained_models=self._models,
            memory=self._memory,
            # Samples of this machine's devices alone are kept for other processes.
            samples_store=options.samples_store
            if getattr(options.executor, "samples_here", False)
            else None,
            foretell=options.foretell or (lambda *_: None),
            meter=options.choose_meter(),
            take_driver=self._reader.replace_device,
        )
        self._refiner = Refiner(self._answers)
        self._refines = refines
        if refines:
            self._answers.note_asked = self._refiner.note
        self._asker = Asker(self._reader, self._answers, options.end_children)
        self._writer = ObservationWriter(lambda: self._memory.open(may_create=True))
        self._run, self._number = uuid.uuid4().hex, itertools.count()
        self._met: LRUCache[object, None] = LRUCache(100_000)
        """Keys of observations, and kernels with their local sizes and devices."""
        self._meeting = threading.Lock()
        self._versions = {"kernelcast": version("kernelcast"), "sampler": str(SAMPLER)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def devices(self) -> tuple[DeviceDescription, ...]:
        """Describe the devices that are asked.

        Raises
        ------
        UnknownDeviceError, NoDeviceError
            If there is no device of an id, or none at all.
        """
        return self._reader.devices()

    def estimate(
        self,
        launch: "Problem | Launch",
        device: str | DeviceDescription | None = None,
        *,
        within_s: float | None = None,
        in_background: bool | None = None,
        anew: bool = False,
        policy: Policy | None = None,
        report: ReportProgress = lambda _: None,
        keep: Callable[[Answer], None] | None = None,
    ) -> Estimate:
        """Predict one launch on one device.

        Parameters
        ----------
        launch : Problem or Launch
            A problem, see `kernelcast.read_problem`, or a launch of pyopencl objects.
        device : str or DeviceDescription, optional
            The device, or its id; of a launch of pyopencl objects it is the queue's.
        within_s : float, optional
            Time that the caller waits, in seconds, instead of the settings'. It counts everything,
            builds included: the best that is known by then answers, and its warnings say why it
            was not sampled, as where a run of the launch would take no longer than samples.
        in_background : bool, optional
            Whether sampling goes on after that time, for the next answer; where the predictor
            refines when left out. Buffers of live objects have to keep their contents meanwhile.
        anew : bool
            Whether the launch is answered anew, whatever was answered before.
        policy : Policy, optional
            What may be used for this answer instead of the predictor's own settings and methods;
            the launch is answered anew then.
        report : callable, optional
            Is told of each stage.
        keep : callable, optional
            Takes the answer with its samples, which can be recorded, and with what makes a better
            answer of them.

        Raises
        ------
        NoAnswerYetError
            If nothing is known within the time.
        InputError, DeviceError
            If source and arguments do not fit together, or the device cannot answer.
        """
        remembers = not (anew or policy is not None)
        policy = policy or self._policy
        self._models.refresh()
        limit = self._limit(policy, within_s, in_background)
        [one] = self._asker.ask(
            limit,
            policy,
            lambda: [(launch, device)],
            is_live=self._reader.is_live(launch),
            report=report,
            remembers=remembers,
        )
        known = one.known  # before the answer: a thread may set it right afterwards
        estimate = one.conclude(limit)
        if keep is None:
            return estimate
        if known is not None and one.request is not None:
            keep(self._answers.make_answer(known, one.request, estimate))
            return estimate
        patient = replace(policy, settings=replace(policy.settings, within_s=None))

        def refine() -> Answer:
            found: list[Answer] = []
            self.estimate(launch, device, policy=patient, keep=found.append)
            return found[0]

        is_live = self._reader.is_live(launch)  # its objects may be gone by then
        keep(Answer(estimate=estimate, recording=None, refine=None if is_live else refine))
        return estimate

    async def aestimate(
        self,
        launch: "Problem | Launch",
        device: str | DeviceDescription | None = None,
        *,
        within_s: float | None = None,
        in_background: bool | None = None,
    ) -> Estimate:
        """Predict as `estimate`, in a thread: other coroutines run meanwhile.

        A coroutine that is cancelled leaves the answer to the next one that asks.
        """
        return await asyncio.to_thread(
            self.estimate, launch, device, within_s=within_s, in_background=in_background
        )

    def estimate_many(
        self,
        launches: "Iterable[Problem | Launch]",
        devices: Sequence[str | DeviceDescription] | None = None,
        *,
        within_s: float | None = None,
        in_background: bool | None = None,
    ) -> list[LaunchEstimate]:
        """Predict every launch on every device, with all that it costs.

        Parameters
        ----------
        launches : iterable of Problem or Launch
            The launches; those of pyopencl objects are asked of their queue's device alone.
        devices : sequence of str or DeviceDescription, optional
            The devices; all of the predictor's when left out.
        within_s, in_background
            As of `estimate`; the time is that of all together.

        Returns
        -------
        list of LaunchEstimate
            One per pair, devices within launches; a device that cannot answer says so in its entry.
        """
        self._models.refresh()
        limit = self._limit(self._policy, within_s, in_background)
        check_device_ids(devices)
        if isinstance(launches, str | Path) or not isinstance(launches, Iterable):
            refuse("launches", launches, "a sequence of Problem, such as [problem]")
        listed = [one if self._reader.is_live(one) else check_problem(one) for one in launches]
        asked = self._asker.ask(
            limit,
            self._policy,
            lambda: self._reader.list_pairs(listed, devices),
            is_live=any(map(self._reader.is_live, listed)),
        )
        find_machine = cache(find_sound_machine)
        return [_weigh(one, limit, find_machine) for one in asked]

    def history(
        self,
        launch: "Problem | Launch | LaunchIdentity",
        device: str | DeviceDescription | None = None,
        *,
        policy: Policy | None = None,
    ) -> LaunchHistory:
        """Give what was observed of exactly this launch, and what of it is believed.

        Parameters
        ----------
        launch : Problem, Launch or LaunchIdentity
            The launch; what is known of one by its identity is what the store tells.
        device, policy
            As of `estimate`.

        Raises
        ------
        KernelcastError
            If that is not known, as where the store does not answer.
        """
        if isinstance(launch, LaunchIdentity):
            history = self._memory.recall(launch)
            machine = find_sound_machine(launch.device.id)
            history.hold_against([*history.known, *doubt_launch(machine)])
            return history
        request = self._reader.read(launch, device, policy=policy or self._policy, remembers=False)
        return self._answers.recall_history(request)

    def refresh_models(self) -> int:
        """Look for other versions of models; give a number that changes with those in use."""
        return self._models.refresh()

    @staticmethod
    def faster(one: Estimate, other: Estimate) -> float:
        """Give the probability that the first launch takes less time than the second.

        Of the kernels alone (see `fastest` for transfers), by `launch_estimates.compare_estimates`.
        """
        return compare_estimates(one, other)

    @staticmethod
    def fastest(entries: Sequence[LaunchEstimate]) -> FastestLaunch:
        """Choose a launch's device by all that is known: `launch_estimates.choose_fastest`."""
        return choose_fastest(entries)

    def observe(
        self,
        launch: "Estimate | LaunchIdentity | Launch",
        measured_s: "float | UserEvent | Sequence[UserEvent]",
        *,
        is_first: bool | None = None,
        key: str = "",
        slowdown: float | None = None,
    ) -> frozenset[ObservationFlag]:
        """Tell how long a launch has really taken, whatever else was at work.

        Parameters
        ----------
        launch : Estimate, LaunchIdentity or Launch
            The launch: an answer of this predictor, its identity, or pyopencl objects.
        measured_s : float, pyopencl.Event or sequence of pyopencl.Event
            Time of the whole kernel on the device, in seconds; or the event of the launch, which is
            waited for. Of several, a launch cut into parts, the time from the first start to the
            last end counts.
        is_first : bool, optional
            Whether it was the kernel's first launch with this local size in its process; by
            default what this predictor is told first of a kernel counts so.
        key : str
            Tells observations apart: of several with the same key only the first counts. Given
            one of its own when left out.
        slowdown : float, optional
            How many times as long it took beside other programs as it would have alone, at least 1.
            Measured when left out, by the threads that ran it where that was in this process: tell
            of a launch when it has ended. What is kept is its time alone.

        Returns
        -------
        frozenset of ObservationFlag
            First launches are kept apart, what sticks out is tagged, what contradicts samples or
            other observations is doubted until it repeats, what contradicts physics for good. None
            of these changes the time that is answered; doubts stand in its warnings.

        Raises
        ------
        InputError
            If the time is not positive, the slowdown is below 1, the launch has no identity, or the
            event is another launch's, of one that has failed, or of a queue that keeps no times.
        EventTimesError
            If the device's events tell wrong times: give seconds by the host's clock there.
        ObservationLostError
            If it cannot be kept.
        """
        if isinstance(launch, Estimate) and launch.identity is None:
            raise InputError("the estimate has no identity; give a LaunchIdentity, or the launch")
        identity = launch.identity if isinstance(launch, Estimate) else launch
        meter = self._answers.meter
        if self._reader.is_live(identity):
            request = self._reader.read(identity, policy=self._policy)
            if meter is not None:
                meter.note(request.device)
            identity = request.identify()
        if not isinstance(identity, LaunchIdentity):
            refuse("launch", launch, "the predictor's Estimate, its identity, or a Launch")
        if not isinstance(measured_s, float | int | Real):
            from kernelcast.sampling.user_objects import read_event_times  # imports pyopencl

            queue = getattr(launch, "queue", None)
            measured_s = read_event_times(measured_s, identity.device.id, queue)
        if not 0 < measured_s < math.inf:
            raise InputError(f"measured time {measured_s} s: give positive seconds")
        if slowdown is not None and not 1 <= slowdown < math.inf:
            msg = f"slowdown {slowdown}: give how many times as long as alone it took, at least 1"
            raise InputError(msg)
        if key and not self._is_new(key):
            return frozenset()
        local = identity.ndrange.local_size if identity.ndrange else None
        is_new = self._is_new((identity.kernel.digest, local or (), identity.device.id))
        alone_s = float(measured_s) / (slowdown or 1.0)
        if slowdown is None and meter is not None:
            beside = meter.judge_run(identity.device.id, alone_s)
            if beside is not None and beside.is_noticeable:
                alone_s = beside.find_alone(alone_s)
        slowdown = float(measured_s) / alone_s
        observation = Observation(
            launch=identity,
            runs=RunTimes(median_s=alone_s, durations_s=(alone_s,)),
            origin=Origin.OBSERVED,
            measurement=key or f"{self._run}-{next(self._number)}",
            machine_state=MachineState(
                load=read_load(), slowdown=slowdown if slowdown > 1 else None
            ),
            versions=self._versions,
            measured_at=datetime.now(UTC),
        )
        seen = replace(see(observation), is_first=is_new if is_first is None else is_first)
        flags = self._answers.take(identity, seen)
        self._writer.add(replace(observation, flags=flags))
        return flags

    def _is_new(self, name: object) -> bool:
        with self._meeting:
            is_new = name not in self._met
            self._met[name] = None
            return is_new

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
        self._asker.stop()
        self._refiner.stop()
        try:
            self._writer.close(timeout_s)
        finally:
            self._memory.close()
            self._options.end_children()
            self._asker.join()
            self._refiner.join()

    def _limit(
        self, policy: Policy, within_s: float | None, in_background: bool | None
    ) -> TimeLimit | None:
        """Begin to count the time that a caller waits; None without an end of it."""
        settings = policy.settings
        if within_s is not None:
            settings = replace(settings, within_s=within_s)  # refuses what is no time
        if settings.within_s is None:
            return None
        goes_on = self._refines if in_background is None else in_background
        return TimeLimit(settings.within_s, goes_on=goes_on)


def _weigh(
    one: AskedLaunch,
    limit: TimeLimit | None,
    find_machine: Callable[[str], MachineDescription | None],
) -> LaunchEstimate:
    """Put the answer of a launch and all else that it costs together; or why it has none."""
    try:
        estimate = one.conclude(limit)
    except KernelcastError as error:
        if isinstance(one.launch, Problem):
            name, device_id = one.launch.name, getattr(one.device, "id", "")
        else:
            from kernelcast.sampling.user_objects import name_device  # loaded by now

            name = str(getattr(one.launch.kernel, "function_name", "launch"))
            device_id = name_device(one.launch.queue)
        return LaunchEstimate(problem=name, device_id=device_id, error=error)
    assert one.request is not None
    known = one.known
    accesses = known.outcome.accesses if known and known.outcome else ()
    problem, machine = one.request.problem, find_machine(estimate.device_id)
    to_device_s, from_device_s = estimate_transfers(problem, accesses, machine) or (None, None)
    launch_s = estimate.launch_seconds
    if launch_s is None and machine is not None and "launch_s" in machine.costs:
        launch_s = machine.costs["launch_s"].value
    return LaunchEstimate(
        problem=problem.name,
        device_id=estimate.device_id,
        estimate=estimate,
        compile_s=estimate.compile_seconds,
        launch_s=launch_s,
        to_device_s=to_device_s,
        from_device_s=from_device_s,
    )
