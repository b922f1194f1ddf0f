"""A backend of the service without a device: everything but the sampling is real."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kernelcast.predictor.answering.doubts import update_doubts
from kernelcast.predictor.answering.identity import identify_launch
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceError, KernelcastError
from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.explanation import Tier
from kernelcast.records.ndrange import NDRange
from kernelcast.service.backend import Ask, PredictorBackend
from kernelcast.testing.builders import make_description

NS_PER_WORK_ITEM = 10.0
"""What the fake devices take."""


def make_devices() -> tuple[DeviceDescription, ...]:
    """Describe two devices that do not exist."""
    first = make_description()
    return first, replace(first, id="other-device-1111", name="Other device")


@dataclass
class FakeBackend(PredictorBackend):
    """Answers by arithmetic; observations, models and problems are the real ones.

    Parameters
    ----------
    database : str
        Store of observations.
    pause_s : float
        How long a sampling takes.
    before : callable
        Is called inside each sampling; may wait or raise.
    is_calibrated : bool
        Whether the analytic model has an answer.
    calls : Counter
        Samplings and models asked, by ``sample`` and ``model``.
    most_at_once : Counter
        Most samplings at the same time, by device.
    """

    database: str
    pause_s: float = 0.0
    before: Callable[[Ask], None] = lambda _: None
    is_calibrated: bool = False
    calls: Counter[str] = field(default_factory=Counter)
    most_at_once: Counter[str] = field(default_factory=Counter)
    models: int = 0
    _now: Counter[str] = field(default_factory=Counter)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        super().__init__(self.database, None)

    def list_devices(self) -> Sequence[DeviceDescription]:
        """Describe the fake devices."""
        return make_devices()

    def sample(self, ask: Ask) -> Estimate:
        """Answer after the pause."""
        device_id = ask.device.id
        with self._guard:
            self.calls["sample"] += 1
            self._now[device_id] += 1
            self.most_at_once[device_id] = max(self.most_at_once[device_id], self._now[device_id])
        try:
            self.before(ask)
            time.sleep(self.pause_s)
            return self._answer(ask, Tier.LINEAR)
        finally:
            with self._guard:
                self._now[device_id] -= 1

    def model(self, ask: Ask) -> Estimate:
        """Answer where the device counts as calibrated."""
        self.calls["model"] += 1
        if not self.is_calibrated:
            msg = f"{ask.device.id} was not calibrated"
            raise DeviceError(msg)
        return self._answer(ask, Tier.ANALYTIC)

    def _answer(self, ask: Ask, tier: Tier) -> Estimate:
        """Make the answer, as the real backend remembers it and speaks of observations."""
        estimate = make_answer(ask, tier)
        self._memory.keep_estimate(estimate)
        facts = self._remember(ask).facts
        return estimate if facts is None else update_doubts(estimate, facts)

    def generation(self) -> int:
        """Give a number that tests change."""
        return self.models


def make_answer(ask: Ask, tier: Tier) -> Estimate:
    """Make the answer of a fake device."""
    problem, device = ask.problem, ask.device
    ndrange = problem.ndrange
    if ndrange.local_size is None:
        ndrange = NDRange(
            global_size=ndrange.global_size,
            local_size=(1,) * ndrange.dimensions,
            global_offset=ndrange.global_offset,
        )
    seconds = ndrange.work_item_count * NS_PER_WORK_ITEM * 1e-9
    chosen = replace(problem, ndrange=ndrange)
    return Estimate(
        device=device.name,
        device_id=device.id,
        kernel=problem.kernel.name,
        ndrange=ndrange,
        compute_units=device.compute_units,
        saturation=None,
        sample_work_groups=(2, 3) if tier is Tier.LINEAR else (0, 0),
        sampled_work_groups=5 if tier is Tier.LINEAR else 0,
        interval=Interval(
            seconds=seconds, low=0.9 * seconds, high=1.1 * seconds, coverage=ask.settings.coverage
        ),
        tier=tier,
        estimates_s={tier.value: seconds},
        sampling_seconds=0.0,
        overhead_seconds=0.0,
        identity=identify_launch(chosen, device, seed=ask.settings.seed),
    )


def failing(error: KernelcastError) -> Callable[[Ask], None]:
    """Make a `before` that raises."""

    def fail(_: Ask) -> None:
        raise error

    return fail
