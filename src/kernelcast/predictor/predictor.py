"""The predictor: what programs, schedulers, the command line and the service ask and tell."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kernelcast.launches.own_machine import find_sound_machine
from kernelcast.predictor.answering.answerer import Answerer
from kernelcast.predictor.answering.launch_history import LaunchHistory
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.policy import MethodChoice, Policy
from kernelcast.predictor.answering.processes import ReportProgress
from kernelcast.predictor.answering.time_limit import TimeLimit
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.predictor.given import check_device_ids, check_identity
from kernelcast.predictor.hurried import HurriedAnswers, HurriedLaunch, Pair
from kernelcast.predictor.known_launches import Answer, KnownLaunch
from kernelcast.predictor.launch_answers import LaunchAnswers
from kernelcast.predictor.launch_estimates import (
    FastestLaunch,
    LaunchEstimate,
    add_costs,
    choose_fastest,
    compare_estimates,
)
from kernelcast.predictor.launch_requests import RequestReader, refuse_live
from kernelcast.predictor.observing import Observer
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.predictor.refinable import make_answer
from kernelcast.predictor.refining import Refiner
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.machine import MachineDescription
from kernelcast.records.observation import ObservationFlag
from kernelcast.records.problem import Problem

if TYPE_CHECKING:
    from kernelcast.launches.live import Launch
    from kernelcast.sampling.user_objects import UserEvent
    from kernelcast.training_data.store import Store

_RECHECK_S = 5.0


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
    Threads share one predictor. A launch that was answered is answered again from memory, without
    a lock, until it is observed, or another version of a model is published. One
    sampling at a time runs on a device. Close it, or use it as a context manager, so that all
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
            methods=MethodChoice(wanted=None if methods is None else frozenset(methods)),
            timeout_s=options.timeout_s,
        )
        self._memory = Memory(store)
        self._trained_models = TrainedModels(registry, clock=options.clock)
        self._answerer = Answerer(
            trained_models=self._trained_models,
            memory=self._memory,
            samples_store=options.choose_samples_store(),
            foretell=options.foretell,
        )
        self._refiner = Refiner(self._answerer) if refines else None
        self._reader = RequestReader(options.executor, self._policy, devices)
        self._hurried = HurriedAnswers(self._reader)
        self._meter = options.choose_meter()
        self._answers = LaunchAnswers(
            self._answerer,
            self._policy,
            self._take_driver,
            refiner=self._refiner,
            meter=self._meter,
        )
        self._observer = Observer(self._answers, self._memory)
        self._clock = options.clock
        self._recheck_s = 0.0
        self._generation = 0

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

        Raises
        ------
        NoAnswerYetError
            If nothing is known within the time.
        InputError, DeviceError
            If source and arguments do not fit together, or the device cannot answer.
        """
        limit = self._limit(within_s, in_background)
        self._look_for_models()
        if limit is not None:
            [one] = self._hurry(limit, lambda: [(launch, device)], [launch])
            return one.conclude(limit)
        if isinstance(launch, Problem) and device is not None:
            device_id = device if isinstance(device, str) else getattr(device, "id", "")
            answer = self._answers.launches.recall_answer(launch, device_id)
            if answer is not None:
                return self._answers.as_now(answer)
        request = self._reader.read(launch, device)
        known = self._answers.ask(request)
        return self._answers.require(known, request)

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
        limit = self._limit(within_s, in_background)
        self._look_for_models()
        if limit is not None:
            launches = [*launches]
            asked = self._hurry(limit, lambda: self._reader.list_pairs(launches, devices), launches)
            return [self._weigh_hurried(one, limit) for one in asked]
        pairs = self._reader.pair(launches, devices)
        found = [self._ask(one) if isinstance(one, LaunchRequest) else one for one in pairs]
        known = [one for one in found if not isinstance(one, LaunchEstimate)]
        self._answers.compose_all(known)
        find = cache(find_sound_machine)
        return [
            one if isinstance(one, LaunchEstimate) else self._weigh(*one, find(one[0].device.id))
            for one in found
        ]

    def answer(
        self,
        launch: "Problem | Launch",
        device: str | DeviceDescription | None = None,
        *,
        policy: Policy | None = None,
        report: ReportProgress = lambda _: None,
    ) -> Answer:
        """Answer a launch anew, whatever was answered before, and keep the samples.

        Parameters
        ----------
        launch, device
            As of `estimate`.
        policy : Policy, optional
            What may be used; the predictor's own when left out.
        report : callable, optional
            Is told of each stage.

        Raises
        ------
        InputError, DeviceError
            As `estimate`.
        """
        policy = policy or self._policy
        answers = self._make_answers(policy)
        within_s = policy.settings.within_s
        if within_s is None:
            request = self._reader.read(launch, device, policy=policy, report=report)
            return make_answer(answers, answers.ask(request), request)
        limit = TimeLimit(within_s)
        [one] = self._hurry(limit, lambda: [(launch, device)], [launch], answers, policy, report)
        estimate = one.conclude(limit)
        if one.known is not None and one.request is not None:
            return make_answer(answers, one.known, one.request)
        patient = replace(policy, settings=replace(policy.settings, within_s=None))
        refine = partial(self.answer, launch, device, policy=patient)
        is_live = self._reader.is_live(launch)
        return Answer(estimate=estimate, recording=None, refine=None if is_live else refine)

    def recall(
        self,
        problem: Problem,
        device: DeviceDescription,
        *,
        policy: Policy | None = None,
        beside: Estimate | None = None,
    ) -> Estimate | None:
        """Answer from observations of exactly this launch; None without any that are believed.

        An answer `beside` that stands is given back where it now has to say of others observations
        that they are not believed.
        """
        request = self._reader.read(problem, device, policy=policy)
        if self._meter is not None:
            self._meter.note(request.device)
        found = self._make_answers(request.policy).recall(request, beside)
        return None if found is None else self._answers.as_now(found)

    def recall_named(self, launch: LaunchIdentity) -> LaunchHistory:
        """Give what is known of a launch by its identity, to judge observations by."""
        return self._memory.recall_named(launch)

    def refresh_models(self) -> int:
        """Look for other versions of models; give a number that changes with those in use."""
        return self._trained_models.refresh()

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
        identity = self._identify(launch)
        if not isinstance(measured_s, float | int | Real):
            from kernelcast.sampling.user_objects import read_event_times  # imports pyopencl

            queue = getattr(launch, "queue", None)
            measured_s = read_event_times(measured_s, identity.device.id, queue)
        return self._observer.observe(
            identity, measured_s, is_first=is_first, key=key, slowdown=slowdown
        )

    def flush(self, timeout_s: float = 30.0) -> None:
        """Wait until every observation so far is in the store.

        Raises
        ------
        ObservationLostError
            If the store has not taken them within the time.
        """
        self._observer.flush(timeout_s)

    def close(self, timeout_s: float = 30.0) -> None:
        """Write what waits, and take no more observations.

        Raises
        ------
        ObservationLostError
            If the store has not taken all within the time.
        """
        self._hurried.stop()
        if self._refiner is not None:
            self._refiner.stop()
        try:
            self._observer.close(timeout_s)
        finally:
            self._memory.close()
            self._options.end_children()
            self._hurried.close()
            if self._refiner is not None:
                self._refiner.close()

    def _identify(self, launch: "Estimate | LaunchIdentity | Launch") -> LaunchIdentity:
        if isinstance(launch, Estimate):
            if launch.identity is None:
                msg = "the estimate has no identity; give a LaunchIdentity, or the launch"
                raise InputError(msg)
            return launch.identity
        if self._reader.is_live(launch):
            request = self._reader.read(launch)
            if self._meter is not None:
                self._meter.note(request.device)
            identity = request.identify()
            assert identity is not None  # only files of problems cannot be read
            return identity
        return check_identity(launch)

    def _make_answers(self, policy: Policy) -> LaunchAnswers:
        """Make answers that remember nothing."""
        return LaunchAnswers(
            self._answerer, policy, self._take_driver, remembers=False, meter=self._meter
        )

    def _limit(self, within_s: float | None, in_background: bool | None) -> TimeLimit | None:
        """Begin to count the time that a caller waits; None without an end of it."""
        settings = self._policy.settings
        if within_s is not None:
            settings = replace(settings, within_s=within_s)  # refuses what is no time
        if settings.within_s is None:
            return None
        goes_on = self._refiner is not None if in_background is None else in_background
        return TimeLimit(settings.within_s, goes_on=goes_on)

    def _hurry(
        self,
        limit: TimeLimit,
        list_pairs: Callable[[], Sequence[Pair]],
        launches: Iterable[object],
        answers: LaunchAnswers | None = None,
        policy: Policy | None = None,
        report: ReportProgress = lambda _: None,
    ) -> list[HurriedLaunch]:
        """Ask in the time that the caller waits."""
        if policy is None:
            settings = replace(self._policy.settings, within_s=limit.within_s)
            policy = replace(self._policy, settings=settings)
        try:
            return self._hurried.ask(
                limit,
                answers or self._answers,
                policy,
                list_pairs,
                is_live=any(map(self._reader.is_live, launches)),
                report=report,
            )
        except KeyboardInterrupt:
            self._options.end_children()  # one at work must not go on
            raise

    def _weigh_hurried(self, one: HurriedLaunch, limit: TimeLimit) -> LaunchEstimate:
        """Put the answer of a launch that was hurried and all else that it costs together."""
        try:
            estimate = one.conclude(limit)
        except KernelcastError as error:
            if not isinstance(one.launch, Problem):
                return refuse_live(one.launch, error)
            device_id = getattr(one.device, "id", "")
            return LaunchEstimate(problem=one.launch.name, device_id=device_id, error=error)
        assert one.request is not None
        known = one.known
        accesses = known.outcome.accesses if known and known.outcome else ()
        machine = find_sound_machine(estimate.device_id)
        return add_costs(one.request.problem, estimate, accesses, machine)

    def _look_for_models(self) -> None:
        """Make answers anew for which another version of a model is to be used."""
        now_s = self._clock()
        if now_s < self._recheck_s:
            return
        self._recheck_s = now_s + _RECHECK_S
        generation = self._trained_models.refresh()
        if generation != self._generation:
            self._generation = generation
            self._answers.renew()

    def _ask(self, request: LaunchRequest) -> tuple[LaunchRequest, KnownLaunch] | LaunchEstimate:
        """Make a launch ready for its answer; or say why it has none."""
        try:
            return request, self._answers.ask(request, composes=False)
        except KernelcastError as error:
            return LaunchEstimate(
                problem=request.problem.name, device_id=request.device.id, error=error
            )

    def _weigh(
        self, request: LaunchRequest, known: KnownLaunch, machine: MachineDescription | None
    ) -> LaunchEstimate:
        """Put the answer and everything else that a launch costs together."""
        estimate = self._answers.require(known, request)
        accesses = known.outcome.accesses if known.outcome else ()
        return add_costs(request.problem, estimate, accesses, machine)

    def _take_driver(self, device: DeviceDescription) -> None:
        """Forget what another driver of the device has done."""
        self._reader.replace_device(device)
        self._answers.launches.forget_device(device.id)
