"""Predictors of a device that exists only as a formula, and the clock that they read."""

from collections.abc import Sequence
from pathlib import Path

from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.predictor import Predictor
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.records.estimates import Estimate
from kernelcast.testing.fake_asker import FakeAsker, make_device, make_problem
from kernelcast.training_data.store import Store

DEVICE = make_device()
PROBLEM = make_problem()


class SettableClock:
    """Tells the time that a test sets."""

    now_s = 1.0

    def __call__(self) -> float:
        """Give it."""
        return self.now_s


def make_predictor(  # noqa: PLR0913 - as the predictor's own
    asker: FakeAsker,
    store: Store,
    registry: str = "",
    *,
    clock: SettableClock | None = None,
    settings: EstimateSettings | None = None,
    methods: Sequence[str] | None = None,
    shadow: str | None = None,
) -> Predictor:
    """Make a predictor of `DEVICE`; its registry is empty unless one is named."""
    options = PredictorOptions(
        asker=asker, clock=clock or SettableClock(), settings=settings or EstimateSettings()
    )
    return Predictor(
        [DEVICE],
        methods,
        shadow,
        store,
        registry or str(Path(store.where).parent / "none"),
        options=options,
    )


def observe(predictor: Predictor, launch: Estimate, *times_s: float) -> None:
    """Observe a first launch, which is kept apart, and others."""
    predictor.observe(launch, 9.0, is_first=True)
    for one in times_s:
        predictor.observe(launch, one, is_first=False)
