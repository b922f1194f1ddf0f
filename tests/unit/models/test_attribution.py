from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.attribution import Attribution, _list_sets, _share_out, attribute
from kernelcast.models.catalogue import make_model
from kernelcast.models.correction import CorrectionModel, FittedCorrection
from kernelcast.models.gate import CLOSED
from kernelcast.models.learned.ridge import RidgeLearner
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable, make_table
from support.synthetic_rows import make_rows

NAMES = (
    "static.loops_count", "static.buffers_count", "compiler.registers_per_work_item",
    "sampled.spread_ratio", "counters.lane_efficiency_ratio", "counters.branches_per_work_item",
    "analytic.l2_oversubscription_ratio",
)  # fmt: skip
SCHEMA = FeatureSchema(names=NAMES, version=1)
DRIVER = "counters.branches_per_work_item"


def make_driven(rows: int = 120, seed: int = 0) -> TrainingTable:
    """Make launches whose time differs from the linear model's by one feature alone."""
    rng = np.random.default_rng(seed)
    features = np.exp(rng.normal(size=(rows, len(NAMES))))
    correction = 0.3 * np.log1p(features[:, NAMES.index(DRIVER)])
    columns = {
        "seconds": np.exp(correction).tolist(), "linear_s": [1.0] * rows,
        "kernels": [f"k{row // 2}" for row in range(rows)], "devices": ["d"] * rows,
    }  # fmt: skip
    return make_table(SCHEMA, features, columns)


@pytest.fixture(scope="module")
def driven() -> FittedCorrection:
    """Give a model that has learned from launches of `make_driven`."""
    model = CorrectionModel(name="plain", learner=RidgeLearner(), is_gated=False)
    return model.fit(make_driven())


@pytest.fixture(scope="module")
def hybrid() -> FittedCorrection:
    """Give the hybrid, trained on launches with planted structure."""
    fitted = make_model("hybrid").fit(make_rows(kernels=16, sizes=4, seed=7))
    assert isinstance(fitted, FittedCorrection)
    return fitted


UNSEEN = make_rows(kernels=4, sizes=3, seed=8)


def attribute_each(fitted: FittedCorrection, table: TrainingTable) -> list[Attribution]:
    """Take the correction of each launch apart."""
    return [attribute(fitted, table.take(np.array([row]))) for row in range(len(table))]


def test_contributions_add_up(hybrid: FittedCorrection) -> None:
    """Groups' contributions are the correction less its base, and the correction is the model's."""
    corrections = hybrid.predict(UNSEEN) / UNSEEN.linear_s - 1
    found = attribute_each(hybrid, UNSEEN)
    assert max(abs(one.correction) for one in found) > 0.01
    for one, correction in zip(found, corrections, strict=True):
        assert one.correction == pytest.approx(correction, abs=1e-9)
        total = sum(each.contribution for each in one.groups)
        assert total == pytest.approx(one.correction - one.base, abs=1e-12)


def test_launches_together_are_their_mean(hybrid: FittedCorrection) -> None:
    """Of several launches the means are told, and they still add up."""
    single, together = attribute_each(hybrid, UNSEEN), attribute(hybrid, UNSEEN)
    assert together.rows == len(UNSEEN)
    assert together.correction == pytest.approx(np.mean([one.correction for one in single]))
    shares = {each.group: each.contribution for each in together.groups}
    assert sum(shares.values()) == pytest.approx(together.correction - together.base, abs=1e-12)
    for group, contribution in shares.items():
        shares_of_rows = [{each.group: each.contribution for each in one.groups} for one in single]
        mean = np.mean([one[group] for one in shares_of_rows])
        assert contribution == pytest.approx(mean, abs=1e-12)


def test_names_the_feature_that_drives(driven: FittedCorrection) -> None:
    """Where one feature makes the correction, its column and its group come first."""
    far = make_driven(rows=20, seed=1)
    for one, value in zip(attribute_each(driven, far), far.column(DRIVER), strict=True):
        typical = abs(np.log1p(value) - np.log1p(np.median(make_driven().column(DRIVER)))) < 0.3
        if typical:
            continue
        assert one.columns[0].name == DRIVER
        assert one.columns[0].value == pytest.approx(value)
        assert one.groups[0].group == "counters"
        assert abs(one.groups[0].contribution) > 3 * abs(one.groups[1].contribution)


def test_effects_are_what_the_median_would_change(driven: FittedCorrection) -> None:
    """A column's effect is the change of the model's own prediction."""
    row = make_driven(rows=2, seed=2).take(np.array([0]))
    found = attribute(driven, row)
    effect = next(one for one in found.columns if one.name == DRIVER)
    features = row.features.copy()
    features[:, NAMES.index(DRIVER)] = effect.median
    moved = driven.predict(row.with_features(row.schema, features))[0] / row.linear_s[0] - 1
    assert effect.effect == pytest.approx(found.correction - moved, abs=1e-9)
    assert effect.median == pytest.approx(np.median(make_driven().column(DRIVER)), rel=0.05)


def test_a_closed_gate_contributes_nothing(driven: FittedCorrection) -> None:
    """Where nothing is believed, nothing is told to have an effect."""
    found = attribute(replace(driven, gate=CLOSED), make_driven())
    assert (found.correction, found.base, found.columns) == (0, 0, ())
    assert all(one.contribution == 0 for one in found.groups)


def test_a_model_without_a_group_says_nothing_of_it() -> None:
    """Only groups that the model sees are told."""
    table = make_rows(kernels=8, sizes=3, seed=3)
    fitted = make_model("hybrid_without_analytic").fit(table)
    assert isinstance(fitted, FittedCorrection)
    found = attribute(fitted, UNSEEN)
    assert {one.group for one in found.groups} == {"static", "compiler", "sampled", "counters"}
    assert all(not one.name.startswith("analytic.") for one in found.columns)


@given(worth=st.lists(st.floats(-5, 5), min_size=16, max_size=16))
def test_shapley_values_of_any_game_add_up(worth: list[float]) -> None:
    """Values add up to the worth of all less that of none."""
    shares = _share_out(np.array(worth), _list_sets(4))
    assert shares.sum() == pytest.approx(worth[-1] - worth[0], abs=1e-9)


def test_shapley_values_of_a_game_by_hand() -> None:
    """Three players of whom two are needed: the textbook's glove game."""
    sets = _list_sets(3)
    worth = (sets[:, 0] & (sets[:, 1] | sets[:, 2])).astype(float)
    np.testing.assert_allclose(_share_out(worth, sets), [2 / 3, 1 / 6, 1 / 6])


def test_refuses_other_tables(driven: FittedCorrection) -> None:
    """Another schema, and no launch at all, are refused."""
    with pytest.raises(InputError, match="schema"):
        attribute(driven, UNSEEN)
    nothing = make_driven().take(np.array([], dtype=np.intp))
    with pytest.raises(InputError, match="no launches"):
        attribute(driven, nothing)
