import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.svm import SVR

from kernelcast.models.catalogue import list_models, make_model
from kernelcast.models.columns import FIGURES, Variant, gather_base, plan_columns
from kernelcast.models.correction import BLOCK_ROWS, FittedCorrection
from kernelcast.models.learned import forest
from kernelcast.models.learned.learner import Part, Rows
from kernelcast.models.learned.svr import SvrLearner
from kernelcast.models.space import EXACT_ROWS, LANDMARKS, fit_space, square_distances
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable, make_table
from support.synthetic_rows import SCHEMA, Planted, make_rows

TRAINING = make_rows(kernels=40, sizes=5, seed=7)
UNSEEN = make_rows(kernels=30, sizes=4, seed=8)


@pytest.fixture(scope="module")
def hybrid() -> FittedCorrection:
    """Give the hybrid, trained."""
    fitted = make_model("hybrid").fit(TRAINING)
    assert isinstance(fitted, FittedCorrection)
    return fitted


def mean_error(seconds: np.ndarray, table: TrainingTable) -> float:
    """Give the mean relative error."""
    return float(np.abs(seconds / table.seconds - 1).mean())


def test_finds_the_planted_curvature(hybrid: FittedCorrection) -> None:
    """On kernels never seen the correction removes most of what the linear model is off by."""
    assert mean_error(hybrid.predict(UNSEEN), UNSEEN) < 0.7 * mean_error(UNSEEN.linear_s, UNSEEN)


def test_leaves_well_predicted_kernels_alone() -> None:
    """Where the linear model is right up to noise, the gate stays all but closed."""
    nothing = Planted(curvature=0.0, kernel_effect=0.0, sample_noise=0.01, run_noise=0.01)
    table = make_rows(kernels=30, sizes=5, seed=3, planted=nothing)
    table = table.take(table.seconds > 0.05)  # the launch's floor is structure too
    unseen = make_rows(kernels=30, sizes=4, seed=4, planted=nothing)
    unseen = unseen.take(unseen.seconds > 0.05)
    seconds = make_model("hybrid").fit(table).predict(unseen)
    assert mean_error(seconds, unseen) <= mean_error(unseen.linear_s, unseen) + 0.001


def test_intervals_hold_on_unseen_kernels(hybrid: FittedCorrection) -> None:
    """Nine in ten rows of kernels never seen lie inside, give or take what 30 kernels can tell."""
    forecast = hybrid.forecast(UNSEEN, 0.9)
    inside = (forecast.low <= UNSEEN.seconds) & (UNSEEN.seconds <= forecast.high)
    assert 0.8 <= inside.mean() <= 0.98


def test_held_out_times_change_nothing(hybrid: FittedCorrection) -> None:
    """A fit depends on its own rows alone: the same without the held-out ones in the table."""
    everything = make_rows(kernels=12, sizes=3, seed=5)
    held = everything.kernels == everything.kernels[0]
    model = make_model("hybrid")
    masked = everything.seconds.copy()
    masked[held] = np.nan
    columns = {name: getattr(everything, name) for name in ("keys", "kernels", *FIGURES)}
    blind = make_table(SCHEMA, everything.features, {**columns, "seconds": masked})
    few = model.fit(everything.take(~held))
    np.testing.assert_array_equal(model.fit(blind).predict(UNSEEN), few.predict(UNSEEN))


def test_far_launches_are_out_of_domain_and_wider(hybrid: FittedCorrection) -> None:
    """Features beyond anything seen are flagged, and the interval grows."""
    features = UNSEEN.features * 1e6
    columns = {name: getattr(UNSEEN, name) for name in ("kernels", "seconds", *FIGURES)}
    far = hybrid.forecast(make_table(SCHEMA, features, columns))
    near = hybrid.forecast(UNSEEN)
    assert not far.in_domain.any()
    assert near.in_domain.mean() > 0.6
    assert (far.high / far.low > near.high / near.low).all()


def test_a_constant_that_changes_is_strange() -> None:
    """A feature that never varied in the training counts once it does."""
    features = TRAINING.features.copy()
    place = SCHEMA.names.index("static.fp64_flag")
    features[:, place] = 0.0
    columns = {name: getattr(TRAINING, name) for name in ("keys", "kernels", "seconds", *FIGURES)}
    fitted = make_model("hybrid").fit(make_table(SCHEMA, features, columns))
    assert isinstance(fitted, FittedCorrection)
    changed = features.copy()
    changed[:, place] = 1.0
    before, after = (
        fitted.space.measure_domain_distance(fitted.place(make_table(SCHEMA, one, columns)))
        for one in (features, changed)
    )
    assert (after > before + 0.01).all()


@pytest.mark.parametrize("variant", list(Variant))
def test_answers_of_rivals_are_not_learned_from(variant: Variant) -> None:
    """A schema with Hong and Kim's time has the columns of one without it."""
    wider = FeatureSchema(names=(*SCHEMA.names, "analytic.mwp_cwp_s"), version=SCHEMA.version)
    groups = ("static", "sampled", "counters", "analytic")
    plain = plan_columns(SCHEMA, groups, variant)
    assert plan_columns(wider, groups, variant).names == plain.names
    other = FeatureSchema(names=(*SCHEMA.names, "analytic.l2_limiter_s"), version=SCHEMA.version)
    assert len(plan_columns(other, groups, variant).names) > len(plain.names)


@pytest.mark.parametrize("name", ["hybrid", "hybrid_pooled", "ridge", "random_forest"])
def test_arrays_are_answered_as_tables(name: str) -> None:
    """More rows than a block, with absent, zero, negative and endless numbers, and one by one."""
    fitted = make_model(name).fit(TRAINING)
    assert isinstance(fitted, FittedCorrection)
    rng = np.random.default_rng(3)
    picks = rng.integers(len(UNSEEN), size=2 * BLOCK_ROWS + 7)
    features = UNSEEN.features[picks]
    features *= rng.lognormal(0.0, 0.5, size=features.shape)
    odd = rng.random(features.shape)
    for low, value in ((0.0, np.nan), (0.01, 0.0), (0.02, -3.5), (0.03, np.inf), (0.04, 1e305)):
        features[(low <= odd) & (odd < low + 0.01)] = value
    columns = {one: getattr(UNSEEN, one)[picks] for one in FIGURES}
    columns["linear_error"][rng.random(len(picks)) < 0.05] = np.nan
    figures = np.column_stack([columns[one] for one in FIGURES])
    many = fitted.forecast_arrays(SCHEMA, features, figures, 0.5)
    table = fitted.forecast(make_table(SCHEMA, features, columns), 0.5)
    each = [fitted.forecast_arrays(SCHEMA, features[[row]], figures[[row]], 0.5)
            for row in range(0, len(picks), 40)]  # fmt: skip
    for end in ("seconds", "low", "high", "in_domain"):
        np.testing.assert_array_equal(getattr(many, end), getattr(table, end))
        alone = [getattr(one, end)[0] for one in each]
        np.testing.assert_allclose(getattr(many, end)[::40], alone, rtol=1e-9)
    assert np.isfinite(many.high).all()
    assert {*many.in_domain} == {True, False}


def test_arrays_need_a_linear_time_a_share_and_the_schema(hybrid: FittedCorrection) -> None:
    """Says what is missing: a time to correct, a share, or the features of the model."""
    figures = np.column_stack([getattr(UNSEEN, name) for name in FIGURES])[:2]
    with pytest.raises(InputError, match="coverage"):
        hybrid.forecast_arrays(SCHEMA, UNSEEN.features[:2], figures, 90.0)
    other = FeatureSchema(names=SCHEMA.names, version=9)
    with pytest.raises(InputError, match="schema"):
        hybrid.forecast_arrays(other, UNSEEN.features[:2], figures)
    figures[1, 0] = np.nan
    with pytest.raises(InputError, match="linear time of nan s"):
        hybrid.forecast_arrays(SCHEMA, UNSEEN.features[:2], figures)


def placed(table: TrainingTable) -> tuple[Rows, np.ndarray]:
    """Give coordinates and targets of launches to learn from."""
    plan = plan_columns(SCHEMA, ("static", "sampled", "counters", "analytic"), Variant.DEVICE)
    groups = np.unique(table.kernels.astype(str), return_inverse=True)[1]
    fitted = fit_space(plan.names, plan.compute(gather_base(table)), groups)
    return fitted.rows, np.log(table.seconds / table.linear_s)


def test_kernel_expansion_is_scikit_learns() -> None:
    """The expansion gives scikit-learn's own predictions of an RBF kernel to 1e-9."""
    rows, targets = placed(TRAINING)
    setting = {"C": 1.0, "width": 2.0}
    gamma = 1 / (2.0 * np.median(rows.between))
    theirs = SVR(kernel="rbf", gamma=gamma, C=1.0, epsilon=0.02, tol=1e-9)
    ours = SvrLearner().fit(rows, targets, setting)
    reference = SVR(kernel="precomputed", C=1.0, epsilon=0.02)
    kernel = np.exp(-gamma * rows.distances)
    expected = reference.fit(kernel, targets).predict(kernel)
    np.testing.assert_allclose(ours.predict(rows), expected, rtol=0, atol=1e-9)
    solved = theirs.fit(rows.projected, targets).predict(rows.projected)
    np.testing.assert_allclose(ours.predict(rows), solved, atol=2e-3)  # the solver's tolerance


@pytest.mark.parametrize("which", ["forest", "boosted"])
def test_trees_are_scikit_learns(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of nodes give scikit-learn's own predictions."""
    rows, targets = placed(TRAINING)
    kind = RandomForestRegressor if which == "forest" else GradientBoostingRegressor
    grown = []

    class Spy(kind):  # type: ignore[misc, valid-type]  # either of two classes
        def fit(self, *args: object, **options: object) -> object:
            grown.append(self)
            return super().fit(*args, **options)

    monkeypatch.setattr(f"sklearn.ensemble.{kind.__name__}", Spy)
    grow = forest.grow_forest if which == "forest" else forest.grow_boosted
    ours = grow(rows, targets, {"least_leaf": 5.0})
    np.testing.assert_allclose(
        ours.predict(rows), grown[0].predict(rows.weighted), rtol=0, atol=1e-12
    )


def test_landmarks_come_close_to_the_exact_fit() -> None:
    """Beyond the limit the approximation predicts about as well as the exact solution."""
    table = make_rows(kernels=EXACT_ROWS // 5 + 2, sizes=5, seed=11)
    rows, targets = placed(table)
    assert rows.distances.shape == (len(table), LANDMARKS)
    setting = {"C": 1.0, "width": 2.0}
    approximate = SvrLearner().fit(rows, targets, setting).predict(rows)
    between = square_distances(rows.projected, np.vstack([
        -2 * rows.projected.T, (rows.projected**2).sum(axis=1), np.ones(len(rows))
    ]))  # fmt: skip
    np.fill_diagonal(between, 0)
    exact_rows = Rows(
        weighted=rows.weighted, projected=rows.projected, distances=between,
        between=between, remainder=rows.remainder,
    )  # fmt: skip
    exact = SvrLearner().fit(exact_rows, targets, setting).predict(exact_rows)
    assert np.sqrt(np.mean((approximate - exact) ** 2)) < 0.3 * targets.std()


def test_cross_predictions_have_not_seen_their_group() -> None:
    """Changing a group's times changes the predictions of others only."""
    rows, targets = placed(TRAINING)
    test = np.flatnonzero(TRAINING.kernels == TRAINING.kernels[0])
    train = np.setdiff1d(np.arange(len(TRAINING)), test)
    parts = [Part(train=train, test=test)]
    changed = targets.copy()
    changed[test] += 3
    learner = SvrLearner()
    before = learner.cross_predict(rows, targets, parts)[:, test]
    np.testing.assert_array_equal(learner.cross_predict(rows, changed, parts)[:, test], before)


def test_pooled_columns_have_no_unit() -> None:
    """A device twice as fast in everything gives the same pooled columns."""
    faster = {"linear_s", "sampling_s"}, {"bandwidth_bytes_per_s", "flops_per_s"}
    columns = {name: getattr(TRAINING, name) for name in ("kernels", "seconds", *FIGURES)}
    columns |= {name: columns[name] / 2 for name in faster[0]}
    columns |= {name: columns[name] * 2 for name in faster[1]}
    is_time = np.array([name.endswith("_s") for name in SCHEMA.names])
    scaled = make_table(SCHEMA, np.where(is_time, 0.5, 1.0) * TRAINING.features, columns)
    plan = plan_columns(SCHEMA, tuple(make_model("hybrid").feature_groups), Variant.POOLED)  # type: ignore[attr-defined]  # a CorrectionModel
    np.testing.assert_allclose(
        plan.compute(gather_base(scaled)), plan.compute(gather_base(TRAINING)), rtol=1e-9
    )
    assert not any(name.endswith(("_s", "_bytes")) for name in plan.names)


def test_rows_without_samples_are_named(hybrid: FittedCorrection) -> None:
    """A launch that was not sampled is refused with its kernel's name, not predicted as NaN."""
    columns = {name: getattr(UNSEEN, name) for name in ("kernels", *FIGURES)}
    linear_s = UNSEEN.linear_s.copy()
    linear_s[5] = np.nan
    table = make_table(SCHEMA, UNSEEN.features, {**columns, "linear_s": linear_s})
    with pytest.raises(InputError, match=rf"1 of 120.*row 5 \({UNSEEN.kernels[5]}\)"):
        hybrid.predict(table)


def test_unknown_names_are_refused() -> None:
    """An unknown model is refused with the names there are."""
    with pytest.raises(InputError, match="hybrid"):
        make_model("oracle")
    assert len(set(list_models())) == len(list_models())
