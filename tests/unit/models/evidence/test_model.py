"""Variances and intervals that are learned, and pieces made with them."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np
import pytest

from kernelcast.models.evidence.calibration import EvidenceRow, calibrate, gather, list_others
from kernelcast.models.evidence.fusion import Kind, Piece, fuse
from kernelcast.models.evidence.model import (
    ANY,
    BUILT_IN,
    EvidenceModel,
    find_half_width,
    know_analytic,
    load_shipped,
    model_from_json,
    model_to_json,
)
from kernelcast.models.evidence.sizes import predict_size
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Interval
from support.evidence import SAMPLE_SD, make_moment, make_rows

COVERAGE = 0.9


@pytest.fixture(scope="module")
def rows() -> list[EvidenceRow]:
    """Make launches to calibrate with."""
    return make_rows()


@pytest.fixture(scope="module")
def model(rows: list[EvidenceRow]) -> EvidenceModel:
    """Calibrate with them."""
    return calibrate(rows)


def test_what_samples_get_wrong_is_taken_off(model: EvidenceModel) -> None:
    """Knows what samples are too slow by and their noise; corrects those of a kernel by other
    launches of it that were measured."""
    plain = model.weigh_samples(make_moment(0.0))
    assert plain.log_seconds == pytest.approx(-0.05, abs=0.02)
    assert math.sqrt(plain.variance) == pytest.approx(SAMPLE_SD, rel=0.3)
    corrected = model.weigh_samples(make_moment(0.0), past=[2.0, 2.2, 1.9])
    assert corrected.log_seconds < plain.log_seconds
    assert corrected.variance < plain.variance
    assert model.judge_samples(make_moment(0.05), 0.0) == pytest.approx(0.0, abs=0.3)


@pytest.mark.parametrize("what", ["samples", "sizes", "samples+sizes", "samples+run"])
def test_intervals_hold_what_they_promise(model: EvidenceModel, what: str) -> None:
    """Cover about 90 % of launches of kernels that were not calibrated with."""
    unseen = make_rows(seed=1)
    inside = []
    for place, others in list_others(unseen, np.arange(len(unseen)), np.random.default_rng(0), 3):
        fused = fuse(gather(model, unseen[place], others, what))
        interval = model.surround(fused, COVERAGE)
        inside.append(interval.low <= math.exp(unseen[place].size.log_seconds) <= interval.high)
    assert mean(inside) > 0.83


def test_doubt_beyond_the_calibration_widens_the_interval(
    model: EvidenceModel, rows: list[EvidenceRow]
) -> None:
    """Counts variance that no calibrated launch had as a normal error's, and surrounds what no
    situation of the calibration resembles by normal quantiles."""
    (piece,) = gather(model, rows[0], rows[1:5], "sizes")
    far = replace(piece, variance=piece.variance + 1.0)
    near, wide = (model.surround(fuse([one]), COVERAGE) for one in (piece, far))
    assert math.log(wide.high / wide.seconds) >= 1.645 * 0.95
    assert near.high / near.low < 1.5
    # Models of before have no such limit.
    old = replace(model, widest={})
    assert old.surround(fuse([far]), COVERAGE).high < wide.high
    strange = fuse([Piece(kind=Kind.LEARNED, log_seconds=0.0, variance=0.01)])
    high = model.surround(strange, COVERAGE).high
    assert math.log(high) == pytest.approx(1.645 * 0.1, rel=1e-3)


def test_estimated_sizes_share_what_the_sampler_gets_wrong(
    model: EvidenceModel, rows: list[EvidenceRow]
) -> None:
    """Rest on the sampler, and never weigh as much as observed ones."""
    known = [one.size for one in rows[1:5]]
    observed = predict_size(known, model.sizes, rows[0].size.log_work, 0.0)
    estimated = model.rest_on_samples(observed)
    assert estimated.variance > observed.variance
    assert estimated.basis == model.weigh_samples(make_moment(0.0)).basis


def test_a_model_survives_json(model: EvidenceModel, rows: list[EvidenceRow]) -> None:
    """Gives the same pieces and intervals."""
    text = model_to_json(model)
    read = model_from_json(text)
    assert model_to_json(read) == text
    for what in ("samples", "samples+sizes"):
        before, after = (fuse(gather(one, rows[0], rows[1:4], what)) for one in (model, read))
        assert after.log_seconds == pytest.approx(before.log_seconds, rel=1e-5)
        told = read.surround(after, 0.9), model.surround(before, 0.9)
        assert told[0].high == pytest.approx(told[1].high, rel=1e-5)


@pytest.mark.parametrize("change", [{"evidence_model": 9}, {"signs": []}, {"forms": 3}])
def test_another_format_is_refused(model: EvidenceModel, change: dict[str, object]) -> None:
    """Names what differs, and says what to do."""
    text = json.dumps({**json.loads(model_to_json(model)), **change})
    with pytest.raises(InputError, match="calibrate again"):
        model_from_json(text)


def test_a_few_launches_teach_what_they_can(rows: list[EvidenceRow]) -> None:
    """Pools forms of samples, keeps settings of sizes, and leaves intervals to variances; without
    samples, says that they were not seen."""
    few = calibrate(rows[:12])
    assert set(few.forms) == {""}
    assert not few.intervals
    assert few.sizes == calibrate(rows[:12]).sizes
    assert fuse(gather(few, rows[20], rows[21:24], "samples+sizes")).variance > 0
    unsampled = calibrate([replace(one, moments=()) for one in rows])
    assert set(unsampled.intervals) >= {"other_sizes"}
    with pytest.raises(InputError, match="calibrated without samples"):
        unsampled.weigh_samples(make_moment(0.0))


def test_what_repeats_is_surer(model: EvidenceModel) -> None:
    """Trusts a launch that was observed at several moments more than one run of it."""
    once, often = (
        model.weigh_observation(0.0, 0.02, moments=count, repeats=count) for count in (1, 5)
    )
    assert often.variance < once.variance
    assert once.note == "observed once, 0 s ago"
    assert often.note == "observed 5 times at 5 moments, 0 s ago"


@pytest.mark.parametrize(
    "changes", [{"is_busy": True}, {"log_seconds": math.log(1e-3)}], ids=["busy", "short"]
)
def test_what_was_not_calibrated_is_less_sure(
    model: EvidenceModel, changes: Mapping[str, Any]
) -> None:
    """Other programs and short launches widen intervals, by an error that all moments share."""
    usual = make_moment(0.0)
    pieces = [model.weigh_samples(one) for one in (usual, replace(usual, **changes))]
    before, after = (model.surround(fuse([one]), COVERAGE) for one in pieces)
    assert after.high / after.low > before.high / before.low
    shared = pieces[1].basis_variance - pieces[0].basis_variance
    more = pieces[1].uncalibrated_variance - pieces[0].uncalibrated_variance
    assert shared == pytest.approx(more)


def test_of_two_moments_of_a_short_launch_the_faster_one_counts_more(model: EvidenceModel) -> None:
    """Does not take the slower one for surer since launches of its time would be."""
    moments = [make_moment(0.0) for _ in range(2)]
    told = math.log(3e-3), math.log(9e-3)
    pieces = [
        model.weigh_samples(
            replace(one, moment=str(seconds), log_seconds=seconds), launch_log_seconds=sum(told) / 2
        )
        for one, seconds in zip(moments, told, strict=True)
    ]
    fast, slow = fuse(pieces).weights
    assert fast > slow


def make_learnable() -> list[EvidenceRow]:
    """Make launches of which a feature tells how far samples are off."""
    draw = np.random.default_rng(1)
    rows = []
    for place, one in enumerate(make_rows()):
        error = float(draw.uniform(-0.4, 0.4))
        moments = tuple(replace(told, log_seconds=told.log_seconds + error) for told in one.moments)
        values = {
            "static.tell_ratio": math.expm1(1.0 - error), "work_groups": 1e4, "compute_units": 2.0,
            "static.noise_ratio": float(draw.uniform()),
        }  # fmt: skip
        family = f"family {place // 10}"
        rows.append(replace(one, moments=moments, values=values, family=family, device="d"))
    return rows


@pytest.fixture(scope="module")
def learned() -> EvidenceModel:
    """Calibrate with launches of which a correction can be learned."""
    return calibrate(make_learnable())


def test_a_correction_is_learned_where_it_gains(learned: EvidenceModel) -> None:
    """It moves samples towards the truth on unseen families, and narrows the interval."""
    rows, model = make_learnable(), learned
    assert model.correction is not None
    plain = calibrate(rows, learners=())
    corrected = [model.correct(fuse(gather(model, row)), row.values) for row in rows]
    assert max(one.distance for one in corrected) < 5.0
    plainly = [fuse(gather(plain, row)) for row in rows]
    with_it, without = (
        mean(abs(one.log_seconds - row.size.log_seconds)
             for one, row in zip(told, rows, strict=True))
        for told in (corrected, plainly)
    )  # fmt: skip
    assert with_it < 0.7 * without
    told = [one.surround(fuse(gather(one, rows[0])), COVERAGE) for one in (model, plain)]
    assert told[0].high / told[0].low < told[1].high / told[1].low
    read = model_from_json(model_to_json(model))
    assert read.correction is not None
    assert read.correction.names == model.correction.names


def test_what_one_device_teaches_is_not_believed_of_another() -> None:
    """Where a feature tells the opposite on each device, no correction is shared."""
    rows = make_learnable()
    other = [
        replace(
            one, device="e", kernel=f"e/{one.kernel}",
            values={**one.values, "static.tell_ratio": math.expm1(
                2.0 - math.log1p(one.values["static.tell_ratio"]))},
        )
        for one in rows
    ]  # fmt: skip
    assert calibrate([*rows, *other]).correction is None


def test_a_correction_counts_by_the_weight_of_samples(
    learned: EvidenceModel, rows: list[EvidenceRow]
) -> None:
    """An answer that rests on whole runs is moved by no more than samples weigh in it."""
    model, row = learned, make_learnable()[0]
    alone = model.correct(fuse(gather(model, row)), row.values)
    observed = model.correct(fuse(gather(model, row, what="samples+run")), row.values)
    assert abs(observed.correction) < 0.5 * abs(alone.correction)
    assert model.correct(fuse(gather(model, rows[0])), {}).correction == 0.0


def surround(model: EvidenceModel, coverage: float = 0.9, doubt: float = 0.0) -> Interval:
    """Put an interval around an analytic time of a second."""
    piece = model.weigh_plain(Kind.ANALYTIC, 0.0, doubt)
    assert piece is not None
    return model.surround(fuse([piece]), coverage)


@pytest.mark.parametrize("runtime", ["intel", "pocl", "rusticl", "somebody's"])
def test_what_is_shipped_surrounds_analytic_times(runtime: str) -> None:
    """Each runtime has its own intervals, and others those of all; wider coverage is wider, and
    what loops leave open that data end is added."""
    model = know_analytic(BUILT_IN, runtime)
    shipped = load_shipped()
    errors = shipped.get(runtime, shipped[ANY])
    for coverage in (0.5, 0.9, 0.99):
        width = math.log(surround(model, coverage).high)
        assert width == pytest.approx(find_half_width(errors, coverage))
    assert surround(model, 0.5).high < surround(model, 0.9).high < surround(model, 0.99).high
    assert know_analytic(BUILT_IN, runtime) is model
    usual, doubted = surround(model), surround(model, doubt=3.0)
    assert doubted.seconds == usual.seconds
    assert math.log(doubted.high / usual.high) == pytest.approx(3.0, rel=0.02)
    assert math.log(usual.low / doubted.low) == pytest.approx(3.0, rel=0.02)
