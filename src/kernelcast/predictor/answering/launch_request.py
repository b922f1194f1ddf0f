"""What is asked: one launch on one device, and what its answer may be made of."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelcast.launches.stand_ins import find_stand_in
from kernelcast.predictor.answering.identity import INSTRUCTIONS, identify_launch
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import Executor, ReportProgress
from kernelcast.predictor.answering.tasks import EstimateOutcome, ModelTask
from kernelcast.predictor.answering.time_limit import TimeLimit
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """One launch on one device, and what its answer may be made of.

    Parameters
    ----------
    problem : Problem
        The launch.
    device : DeviceDescription
        The device.
    policy : Policy
        What may be used.
    executor : Executor
        Has the device sample.
    report : callable
        Is told of each stage.
    is_live : bool
        Whether the problem describes a program's own objects: it must not outlive the call, for it
        holds their buffers.
    limit : TimeLimit or None
        How long the caller waits.
    """

    problem: Problem
    device: DeviceDescription
    policy: Policy
    executor: Executor
    report: ReportProgress = lambda _: None
    is_live: bool = False
    limit: TimeLimit | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", self.problem.on(self.device))

    @property
    def includes_files(self) -> bool:
        """Whether its identity lacks what files say that the source includes."""
        return self.problem.kernel.includes_files

    def identify(self, *, asks: bool = True) -> LaunchIdentity | None:
        """Say what the launch is remembered under; None if a buffer's file cannot be read.

        Its size is described as far as this process knows it, or where it `asks`, another one.
        """
        seed = self.policy.settings.seed
        try:
            return identify_launch(
                self.problem, self.device, seed=seed, parameters=self._describe_size(asks=asks)
            )
        except InputError:  # sampling will say so better
            return None

    def _describe_size(self, *, asks: bool) -> Mapping[str, float]:
        """Say how much the launch does by its source."""
        if self.problem.ndrange.local_size is None:
            return {}
        device_id = self.device.id if self.policy.settings.samples else ""
        instructions = self.executor.count_work(self.problem, device_id, asks=asks)
        return {} if instructions is None else {INSTRUCTIONS: instructions}

    def ask_model(self) -> ModelTask:
        """Give what the analytic model is asked."""
        stand_in = find_stand_in(self.device)
        return ModelTask(
            problem=self.problem,
            device_id=self.device.id,
            stand_in=stand_in.id if stand_in else "",
        )

    def hurry(self, limit: TimeLimit) -> "LaunchRequest":
        """Give the launch asked for with a time limit, which is told of each stage."""

        def report(stage: str) -> None:
            limit.note(stage)
            self.report(stage)

        return replace(self, limit=limit, report=report)

    def with_moments(self, moments: int) -> "LaunchRequest":
        """Give the launch sampled at fewer moments, each with its share of the budget."""
        settings = self.policy.settings
        plan = settings.plan
        if moments == plan.moments:
            return self
        plan = replace(plan, moments=moments, budget=plan.budget * moments / plan.moments)
        return replace(self, policy=replace(self.policy, settings=replace(settings, plan=plan)))

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
