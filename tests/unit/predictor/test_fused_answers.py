"""What an answer is put together of, and what one wrong piece can do to it."""

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.recordings import read_recordings, write_recordings
from kernelcast.launches.settings import EstimateSettings
from kernelcast.models.evidence.fusion import Kind, Piece
from kernelcast.predictor.answering.composing import list_contradictions
from kernelcast.predictor.estimates import replay
from kernelcast.records.estimates import Tier
from kernelcast.training_data.store import Store, open_store
from support.fake_executor import (
    DEVICE,
    PROBLEM,
    FakeExecutor,
    answer,
    make_predictor,
    make_problem,
    observe,
)

UNSAMPLED = EstimateSettings(samples=False)


@pytest.fixture
def sizes(executor: FakeExecutor) -> FakeExecutor:
    """Give a device whose kernels do the same whatever their buffers hold."""
    executor.depends_on_contents = False
    return executor


def test_an_observed_size_tells_of_others(sizes: FakeExecutor, store: Store) -> None:
    """A new size is answered without running anything, and without a look at its source."""
    predictor = make_predictor(sizes, store)
    observe(predictor, predictor.estimate(PROBLEM, DEVICE.id), 0.6, 0.6)
    predictor.flush()
    bare = make_predictor(sizes, store, settings=UNSAMPLED)
    found = bare.estimate(make_problem(work_groups=50_000), DEVICE.id)
    assert found.tier is Tier.SIZES
    assert found.seconds == pytest.approx(0.3, rel=0.05)
    assert found.estimates_s["sizes"] == pytest.approx(found.seconds)
    assert sizes.modelled == 1  # to know whether contents matter
    bare.estimate(make_problem(work_groups=25_000), DEVICE.id)
    assert (len(sizes.tasks), sizes.modelled) == (1, 1)


def test_sizes_stand_beside_samples(sizes: FakeExecutor, store: Store) -> None:
    """Observed sizes are weighed with samples, and take the place of estimated ones."""
    predictor = make_predictor(sizes, store)
    first, other = make_problem(work_groups=50_000), make_problem(work_groups=60_000)
    sampled = predictor.estimate(first, DEVICE.id)
    kinds = {one.kind for one in predictor.estimate(other, DEVICE.id).list_pieces()}
    assert kinds == {"samples", "other_estimates"}
    observe(predictor, sampled, 0.25, 0.25)
    renewed = predictor.estimate(other, DEVICE.id)
    assert {one.kind for one in renewed.list_pieces()} == {"samples", "other_sizes"}
    assert sum(one.weight for one in renewed.list_pieces()) == pytest.approx(1.0)
    assert "other sizes" in renewed._repr_html_()
    assert renewed.explain().evidence == "built in"
    assert len(sizes.tasks) == 2  # samples are kept


@pytest.mark.parametrize("depends", [True, None])
def test_sizes_are_others_where_contents_decide(
    executor: FakeExecutor, store: Store, depends: bool | None
) -> None:
    """Where the source does not say that contents do not matter, no size tells of another."""
    executor.depends_on_contents = depends
    predictor = make_predictor(executor, store)
    observe(predictor, predictor.estimate(PROBLEM, DEVICE.id), 0.6, 0.6)
    found = predictor.estimate(make_problem(work_groups=50_000), DEVICE.id)
    assert {one.kind for one in found.list_pieces()} == {"samples"}


def test_a_replay_is_put_together_of_the_same(
    sizes: FakeExecutor, store: Store, tmp_path: Path
) -> None:
    """A recording holds what its answer rested on; without that, samples alone answer."""
    predictor = make_predictor(sizes, store)
    observe(predictor, predictor.estimate(PROBLEM, DEVICE.id), 0.6, 0.6)
    problem = make_problem(work_groups=50_000)
    answered = answer(predictor, problem)
    assert answered.recording is not None
    path = tmp_path / "recording.json"
    write_recordings(path, [replace(answered.recording, kernel_digest=problem.kernel.digest)])
    (recording,) = read_recordings(path)
    recordings = [recording, replace(recording, pieces=())]
    told = [one.estimate for one, _ in replay(recordings, None, settings=EstimateSettings())]
    found, alone = (one for one in told if one is not None)
    assert found.seconds == answered.estimate.seconds
    assert {one.kind for one in alone.list_pieces()} == {"samples"}


def test_what_others_observe_is_seen_within_seconds(
    sizes: FakeExecutor, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor, problem = make_predictor(sizes, store), make_problem(work_groups=40_000)
    predictor.estimate(problem, DEVICE.id)
    with open_store(Path(store.where)) as theirs, make_predictor(sizes, theirs) as other:
        observe(other, other.estimate(problem, DEVICE.id), 0.2, 0.2, 0.2)
    later_s = time.monotonic() + 6.0
    monkeypatch.setattr(time, "monotonic", lambda: later_s)
    again = predictor.estimate(problem, DEVICE.id)
    assert "observed" in {one.kind for one in again.list_pieces()}


def test_what_contradicts_each_other_is_named() -> None:
    """Samples that are far from an observation and from other sizes say so; near ones do not."""

    def tell(kind: Kind, seconds: float, deviation: float = 0.1) -> Piece:
        return Piece(kind=kind, log_seconds=math.log(seconds), variance=deviation**2)

    near = [tell(Kind.OBSERVED, 1.0), tell(Kind.SAMPLES, 1.1), tell(Kind.SAMPLES, 1.3)]
    assert list_contradictions([*near, tell(Kind.ANALYTIC, 9.0)]) == []
    assert list_contradictions([tell(Kind.OBSERVED, 1.0), tell(Kind.SAMPLES, 3.0, 1.0)]) == []
    assert list_contradictions([*near, tell(Kind.OTHER_SIZES, 3.0)]) == [
        f"{source}, but other sizes of the kernel say 3.00 s"
        for source in ("observations of the launch say 1.00 s", "its samples say 1.20 s")
    ]
