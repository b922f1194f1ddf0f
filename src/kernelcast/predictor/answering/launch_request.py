"""What is asked: one launch on one device, and what its answer may be made of."""

from dataclasses import dataclass, replace

from kernelcast.launches.machines import find_stand_in
from kernelcast.predictor.answering.identity import INSTRUCTIONS, AskedName, identify_launch
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import Executor, ReportProgress
from kernelcast.predictor.answering.tasks import EstimateOutcome, ModelTask
from kernelcast.predictor.answering.time_limit import TimeLimit
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import Tier
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """One launch on one device, and what its answer may be made of."""

    problem: Problem
    device: DeviceDescription
    policy: Policy
    executor: Executor
    """Has the device sample."""
    report: ReportProgress = lambda _: None
    """Is told of each stage."""
    is_live: bool = False
    """Whether the problem describes a program's own objects: it must not outlive the call, for it
    holds their buffers."""
    limit: TimeLimit | None = None
    """How long the caller waits."""
    name: AskedName | None = None
    """What the caller's problem is found under the next time."""
    remembers: bool = True
    """Whether what is found out is remembered; else the launch is answered anew."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", self.problem.on(self.device))

    @property
    def includes_files(self) -> bool:
        """Whether its identity lacks what files say that the source includes."""
        return self.problem.kernel.includes_files

    @property
    def kernel_key(self) -> tuple[str, str, str]:
        """The kernel on its device, as `kernel_sizes.name_kernel` names it."""
        return self.problem.kernel.digest, self.device.id, self.device.driver

    def identify(self) -> LaunchIdentity | None:
        """Say what the launch is remembered under; None if a buffer's file cannot be read."""
        problem, policy = self.problem, self.policy
        parameters: dict[str, float] = {}
        if problem.ndrange.local_size is not None:
            device_id = self.device.id if policy.settings.samples else ""
            asks = policy.methods.uses(Tier.SIZES)
            instructions = self.executor.count_work(problem, device_id, asks=asks)
            parameters = {} if instructions is None else {INSTRUCTIONS: instructions}
        try:
            return identify_launch(
                problem, self.device, seed=policy.settings.seed, parameters=parameters
            )
        except InputError:  # sampling will say so better
            return None

    def ask_model(self) -> ModelTask:
        stand_in = find_stand_in(self.device)
        return ModelTask(
            problem=self.problem,
            device_id=self.device.id,
            stand_in=stand_in.id if stand_in else "",
        )

    def hurry(self, limit: TimeLimit, *, remembers: bool) -> "LaunchRequest":
        """Give the launch asked for with a time limit, which is told of each stage."""

        def report(stage: str) -> None:
            limit.note(stage)
            self.report(stage)

        return replace(self, limit=limit, report=report, remembers=remembers)

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
