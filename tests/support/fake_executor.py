"""Answers and predictors of synthetic launches."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.recordings import LaunchFacts
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.linear import fit_moments
from kernelcast.models.regression import FIGURES
from kernelcast.predictor.answering.measuring import record
from kernelcast.predictor.answering.memory import Answer
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import (
    EstimateOutcome,
    EstimateTask,
    LaunchRow,
    ModelOutcome,
    ModelTask,
    ReportProgress,
    read_moments,
)
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.arguments import BufferArgument, ElementType, Init
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.feature_vector import FeatureSchema, make_vector
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.training_table import (
    NUMBER_COLUMNS,
    TEXT_COLUMNS,
    TrainingTable,
    make_table,
)
from kernelcast.training_data.store import Store
from support.builders import make_description
from support.fakes import SyntheticLaunch

LOCAL_SIZE = (64,)
"""What the devices choose where the problem leaves it to them."""


@dataclass(slots=True)
class FakeExecutor:
    """Samples synthetic launches; an `Executor`."""

    work_group_s: float = 5e-6
    """Time of each work-group, in seconds; may be changed between samplings."""
    row: LaunchRow | None = None
    """What learned models see of every launch, where it is asked for."""
    row_failure: str = ""
    """Why there is no row."""
    analytic: AnalyticEstimate | None = None
    """What the analytic model says."""
    values: dict[str, float] = field(default_factory=dict)
    """Features that the source is said to tell of every launch."""
    error: KernelcastError | None = None
    """Is raised instead of any answer."""
    depends_on_contents: bool | None = None
    """What the source is said to tell of every kernel."""
    driver: str = "1"
    """Of the device that really samples."""
    modelled: int = 0
    """How often the analytic model was asked."""
    tasks: list[EstimateTask] = field(default_factory=list)
    samples_here: bool = False
    """Whether its samples are kept for other processes, as those of this machine's devices."""
    busy: threading.Lock = field(default_factory=threading.Lock)

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Sample the launch; two at once on a device would be a mistake."""
        del timeout_s
        report("sampling")
        if self.error is not None:
            raise self.error
        assert self.busy.acquire(blocking=False), "two launches are sampled at once"
        try:
            self.tasks.append(task)
            return self._sample(task)
        finally:
            self.busy.release()

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        del timeout_s
        report("analytic model")
        self.modelled += 1
        return ModelOutcome(
            analytic=self.analytic,
            ndrange=choose_local(task.problem.ndrange),
            values=self.values if task.wants_values else {},
            depends_on_contents=self.depends_on_contents,
        )

    def count_work(self, problem: Problem, device_id: str, *, asks: bool) -> None:
        """Count nothing."""

    def _sample(self, task: EstimateTask) -> EstimateOutcome:
        kernel = task.problem.kernel
        launch = SyntheticLaunch(choose_local(task.problem.ndrange), self.work_group_s)
        launch.device = replace(launch.device, id=task.device_id, driver=self.driver)
        estimate, runs = sample_launch(launch, kernel.name, task.settings, wait=lambda _: None)
        outcome = EstimateOutcome(
            estimate=estimate,
            recording=record(launch, kernel, runs),
            moments=read_moments(runs),
            depends_on_contents=self.depends_on_contents,
        )
        if not task.wants_row:
            return outcome
        facts = LaunchFacts(values={}, issued_per_work_item=None, analytic=None)
        row = self.row
        if row is not None:
            row = replace(row, columns={**row.columns, "linear_s": fit_moments(runs).seconds})
        return replace(
            outcome,
            row=row,
            recording=replace(outcome.recording, facts=None if row is None else facts),
            row_failure="" if row is not None else self.row_failure,
        )


def choose_local(ndrange: NDRange) -> NDRange:
    if ndrange.local_size is not None:
        return ndrange
    return replace(ndrange, local_size=LOCAL_SIZE)


def make_problem(
    number: int = 0,
    *,
    options: tuple[str, ...] = (),
    local_size: tuple[int, ...] | None = LOCAL_SIZE,
    work_groups: int = 100_000,
) -> Problem:
    """Make a problem; another number, another kernel."""
    kernel = Kernel(
        name="triad",
        source=f"kernel void triad(global float *a) {{ a[get_global_id(0)] = {number}; }}",
        build_options=options,
    )
    items = LOCAL_SIZE[0] * work_groups
    argument = BufferArgument(element=ElementType("float32"), count=items, init=Init.ZEROS)
    return Problem(
        name=f"triad{number}",
        kernel=kernel,
        ndrange=NDRange(global_size=(items,), local_size=local_size),
        arguments=(argument,),
    )


def make_device(name: str = "fake-device-0000", driver: str = "1") -> DeviceDescription:
    return replace(make_description(), id=name, driver=driver)


def make_analytic(seconds: float = 0.5, doubt: float = 0.0) -> AnalyticEstimate:
    return AnalyticEstimate(
        model="cpu",
        machine="fake-device-0000",
        seconds=seconds,
        limiter="DRAM",
        limiters={"DRAM": seconds, "fp32": seconds / 4},
        doubt=doubt,
    )


def widen_schema(table: TrainingTable, schema: FeatureSchema) -> TrainingTable:
    features = np.column_stack([table.column(name) for name in schema.names])
    columns = {name: getattr(table, name) for name in (*TEXT_COLUMNS, *NUMBER_COLUMNS)}
    return make_table(schema, features, columns)


def row_of(table: TrainingTable, place: int) -> LaunchRow:
    """Make of a table's row what a device would tell of that launch."""
    values = dict(zip(table.schema.names, table.features[place].tolist(), strict=True))
    known = {name: value for name, value in values.items() if np.isfinite(value)}
    columns = {name: float(getattr(table, name)[place]) for name in FIGURES}
    vector = make_vector(known, table.schema)
    return LaunchRow(vector=vector, columns={**columns, "two_point_s": math.nan})


DEVICE = make_device()
PROBLEM = make_problem()


class SettableClock:
    """Tells the time that a test sets."""

    now_s = 1.0

    def __call__(self) -> float:
        return self.now_s


def make_predictor(
    executor: FakeExecutor,
    store: Store,
    registry: str = "",
    *,
    clock: SettableClock | None = None,
    settings: EstimateSettings | None = None,
    methods: Sequence[str] | None = None,
) -> Predictor:
    """Make a predictor of `DEVICE`; its registry is empty unless one is named."""
    options = PredictorOptions(
        executor=executor, clock=clock or SettableClock(), settings=settings or EstimateSettings()
    )
    return Predictor(
        [DEVICE],
        methods,
        store,
        registry or str(Path(store.where).parent / "none"),
        options=options,
    )


def answer(
    predictor: Predictor, problem: Problem = PROBLEM, policy: Policy | None = None
) -> Answer:
    found: list[Answer] = []
    predictor.estimate(problem, DEVICE.id, anew=True, policy=policy, keep=found.append)
    return found[0]


def observe(predictor: Predictor, launch: Estimate, *times_s: float) -> None:
    """Observe a first launch, which is kept apart, and others."""
    predictor.observe(launch, 9.0, is_first=True)
    for one in times_s:
        predictor.observe(launch, one, is_first=False)
