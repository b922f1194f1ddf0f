"""Launches are sampled as long as that is worth its time, on made-up devices."""

import time
from dataclasses import replace

import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering import memory
from kernelcast.predictor.predictor import Predictor
from kernelcast.records.estimates import Tier
from kernelcast.training_data.store import Store
from support.fake_executor import (
    DEVICE,
    FakeExecutor,
    make_predictor,
    make_problem,
    observe,
)

# Seconds of a work-group: kernels of milliseconds, and of minutes.
SHORT_S, LONG_S = 1e-7, 5e-2
SIZES = (10_000, 20_000, 30_000, 40_000)


def learn(executor: FakeExecutor, store: Store, count: int, **settings: float) -> Predictor:
    """Give a predictor that has observed sizes of a kernel, each as long as its work says."""
    executor.depends_on_contents = False
    predictor = make_predictor(
        executor, store, settings=replace(EstimateSettings(), **settings)  # type: ignore[arg-type]
    )  # fmt: skip
    for work_groups in SIZES[:count]:
        estimate = predictor.estimate(make_problem(work_groups=work_groups), DEVICE.id)
        observe(predictor, estimate, executor.work_group_s * work_groups)
    executor.tasks.clear()
    return predictor


def test_short_launches_are_answered_by_what_was_observed(
    executor: FakeExecutor, store: Store
) -> None:
    """Samples would take longer than they narrow the interval; the answer says so."""
    executor.work_group_s = SHORT_S
    predictor = learn(executor, store, 4)
    found = predictor.estimate(make_problem(work_groups=15_000), DEVICE.id)
    assert not executor.tasks
    assert found.tier is Tier.SIZES
    assert found.seconds == pytest.approx(15_000 * SHORT_S, rel=0.1)
    assert "other sizes were observed" in found.explain().missing["linear"]
    assert predictor.estimate(make_problem(work_groups=15_000), DEVICE.id) is found


def test_long_launches_are_sampled_where_observations_are_old(
    executor: FakeExecutor, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines have states: what was observed yesterday leaves so much open that a sample pays."""
    executor.work_group_s = LONG_S
    predictor = learn(executor, store, 4)
    predictor.estimate(make_problem(work_groups=35_000), DEVICE.id)
    assert not executor.tasks
    tomorrow_s = time.time() + 86_400
    monkeypatch.setattr(memory.time, "time", lambda: tomorrow_s)
    found = predictor.estimate(make_problem(work_groups=15_000), DEVICE.id)
    assert len(executor.tasks) == 1
    assert {"samples", "other_sizes"} <= {one.kind for one in found.list_pieces()}


@pytest.mark.parametrize(
    ("count", "settings"),
    [(2, {}), (4, {"least_gain": 0.0}), (4, {"least_gain": 0.0, "within_s": 5.0})],
)
def test_launches_are_sampled_where_that_is_wanted(
    executor: FakeExecutor, store: Store, count: int, settings: dict[str, float]
) -> None:
    """With few sizes, and with samples always."""
    executor.work_group_s = SHORT_S
    predictor = learn(executor, store, count, **settings)
    predictor.estimate(make_problem(work_groups=15_000), DEVICE.id)
    assert len(executor.tasks) == 1
