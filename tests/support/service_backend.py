"""A backend of the service without a device: everything but the sampling is real."""

import math
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    # It wants httpx2 by now; httpx still works, and our own client speaks it.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient as TestClient
import httpx
from starlette.routing import BaseRoute

from kernelcast.predictor.answering.measuring import record
from kernelcast.predictor.answering.memory import Answer
from kernelcast.predictor.answering.processes import (
    EstimateOutcome,
    EstimateTask,
    Executor,
    ModelOutcome,
    ModelTask,
    ReportProgress,
)
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import identify_launch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.service import ServiceSettings, create_app
from kernelcast.service.backend import Ask, Backend
from kernelcast.service.service import Service
from support.builders import make_description, make_estimate
from support.evidence import make_moment
from support.fake_executor import make_analytic
from support.fakes import SyntheticLaunch, sample

Plain = dict[str, Any]
FIRST, SECOND = "fake-device-0000", "other-device-1111"
"""Ids of the fake devices."""
PROBLEM: Plain = {
    "code": "kernel void fill(global float *a) { a[get_global_id(0)] = 1.0f; }",
    "kernel": "fill",
    "global_size": [1024],
    "local_size": [64],
    "args": [{"buffer": "float32", "count": 1024}],
}
"""One that can be sent."""
_ROUTES: list[BaseRoute] = []
NS_PER_WORK_ITEM = 10.0
"""What the fake devices take."""


def make_devices() -> tuple[DeviceDescription, ...]:
    """Describe two devices that do not exist."""
    first = make_description()
    return first, replace(first, id=SECOND, name="Other device")


@dataclass
class FakeBackend(Backend):
    """Answers by arithmetic; observations, models and problems are the real ones."""

    database: str
    """Store of observations."""
    pause_s: float = 0.0
    """How long a sampling takes."""
    before: Callable[[Ask], None] = lambda _: None
    """Is called inside each sampling; may wait or raise."""
    is_calibrated: bool = False
    """Whether the analytic model has an answer."""
    calls: Counter[str] = field(default_factory=Counter)
    """Samplings and models asked, by ``sample`` and ``model``."""
    most_at_once: Counter[str] = field(default_factory=Counter)
    """Most samplings at the same time, by device."""
    models: int = 0
    _now: Counter[str] = field(default_factory=Counter)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        super().__init__(self.database, None, FakeDevices(lambda: self.is_calibrated))

    def list_devices(self) -> Sequence[DeviceDescription]:
        """Describe the fake devices."""
        return make_devices()

    def answer(self, ask: Ask) -> Answer:
        """Answer after the pause, or where nothing may run as the device counts as calibrated."""
        if not ask.settings.samples:
            self.calls["model"] += 1
            return super().answer(ask)
        device_id = ask.device.id
        with self._guard:
            self.calls["sample"] += 1
            self._now[device_id] += 1
            self.most_at_once[device_id] = max(self.most_at_once[device_id], self._now[device_id])
        try:
            self.before(ask)
            time.sleep(self.pause_s)
            return super().answer(ask)
        finally:
            with self._guard:
                self._now[device_id] -= 1

    def generation(self) -> int:
        """Give a number that tests change."""
        return self.models


@dataclass(frozen=True, slots=True)
class FakeDevices(Executor):
    """Devices that answer by arithmetic; an `Executor`."""

    is_calibrated: Callable[[], bool]
    """Tells whether the analytic model has an answer."""

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        """Answer at once."""
        del report
        device = next(one for one in make_devices() if one.id == task.device_id)
        ask = Ask(problem=task.problem, device=device, settings=task.settings, timeout_s=timeout_s)
        estimate = make_answer(ask)
        launch = SyntheticLaunch(estimate.ndrange, 1e-6)
        kernel = Kernel(name=estimate.kernel, source="kernel")
        recording = record(launch, kernel, [sample(launch, SamplingPlan())])
        return EstimateOutcome(
            estimate=estimate,
            recording=replace(recording, device=device),
            moments=(make_moment(math.log(estimate.seconds), log_error=math.log(0.005)),),
        )

    def model(self, task: ModelTask, *, timeout_s: float, report: ReportProgress) -> ModelOutcome:
        """Answer where the device counts as calibrated."""
        del timeout_s, report
        ndrange = _choose_local(task.problem.ndrange)
        seconds = ndrange.work_item_count * NS_PER_WORK_ITEM * 1e-9
        found = replace(make_analytic(seconds), machine=task.device_id)
        return ModelOutcome(analytic=found if self.is_calibrated() else None, ndrange=ndrange)


def _choose_local(ndrange: NDRange) -> NDRange:
    if ndrange.local_size is not None:
        return ndrange
    return replace(ndrange, local_size=(1,) * ndrange.dimensions)


def make_answer(ask: Ask) -> Estimate:
    """Make the answer of a fake device."""
    problem, device = ask.problem, ask.device
    ndrange = _choose_local(problem.ndrange)
    seconds = ndrange.work_item_count * NS_PER_WORK_ITEM * 1e-9
    chosen = replace(problem, ndrange=ndrange)
    return make_estimate(
        seconds, device=device.name, device_id=device.id, kernel=problem.kernel.name,
        ndrange=ndrange, compute_units=device.compute_units,
        interval=Interval(
            seconds=seconds, low=0.9 * seconds, high=1.1 * seconds, coverage=ask.settings.coverage
        ),
        identity=identify_launch(chosen, device, seed=ask.settings.seed),
    )  # fmt: skip


def failing(error: KernelcastError) -> Callable[[Ask], None]:
    """Make a `before` that raises."""

    def fail(_: Ask) -> None:
        raise error

    return fail


def make_settings(folder: Path, **changes: Any) -> ServiceSettings:  # noqa: ANN401 - of settings
    """Make settings under which everything is allowed, of a service that keeps all in a folder."""
    given = {
        "database": str(folder / "store.sqlite"), "registry": str(folder / "models"),
        "allow_run": True, "runs_jobs": False,
    }  # fmt: skip
    return ServiceSettings(**{**given, **changes})


def open_client(
    settings: ServiceSettings,
    backend: Backend | None = None,
    **changes: Any,  # noqa: ANN401 - of settings
) -> TestClient:
    """Make a client of a service that starts with it, over fake devices unless told otherwise."""
    backend = backend or FakeBackend(str(settings.database))
    app = create_app(replace(settings, **changes), backend=backend)
    # FastAPI builds routes at an application's first request, which takes longer than most tests.
    _ROUTES.extend(app.router.routes if not _ROUTES else ())
    app.router.routes[:] = _ROUTES
    return TestClient(app, base_url="http://127.0.0.1")


def service_of(client: Any) -> Service:  # noqa: ANN401 - a test client, which is not ours
    """Give the service behind a client."""
    found: Service = client.app.state.service
    return found


def send_estimate(
    client: Any,  # noqa: ANN401 - a test client
    problem: Plain,
    **more: object,
) -> httpx.Response:
    """Ask for an estimate, of the first device unless told otherwise."""
    asked = {"problem": problem, "devices": [FIRST], **more}
    answer: httpx.Response = client.post("/v1/estimates", json=asked)
    return answer


def estimate(
    client: Any,  # noqa: ANN401 - a test client
    problem: Plain,
    **more: object,
) -> Plain:
    """Give the first answer to such a question."""
    answer = send_estimate(client, problem, **more)
    assert answer.status_code == 200, answer.text
    found: Plain = answer.json()["estimates"][0]
    return found


def observe(client: Any, *observations: Plain) -> Plain:  # noqa: ANN401 - a test client
    """Send observations; give what became of them."""
    answer = client.post("/v1/observations", json={"observations": list(observations)})
    assert answer.status_code == 200, answer.text
    found: Plain = answer.json()
    return found
