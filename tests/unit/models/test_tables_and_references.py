import numpy as np
import pytest

from kernelcast.models.catalogue import make_model
from kernelcast.models.history import HistoryModel
from kernelcast.models.preparation import fit_preparation
from kernelcast.models.references import ColumnReference
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import make_table
from support.synthetic_rows import SCHEMA, make_rows

VOLUMES = FeatureSchema(names=("analytic.moved_bytes", "analytic.flops_count"), version=1)


def test_columns_are_references() -> None:
    """Each rule takes its column; the paper's formula falls back where there are no two sizes."""
    table = make_rows(kernels=2, sizes=2)
    np.testing.assert_array_equal(ColumnReference(name="two_point").seconds(table), table.linear_s)
    pooled = ColumnReference(name="pooled").seconds(table)
    rate = table.column("sampled.total_s") / table.column("sampled.work_groups_count")
    np.testing.assert_allclose(pooled, rate * table.work_groups)
    analytic = ColumnReference(name="analytic").seconds(table)
    np.testing.assert_array_equal(analytic, table.column("analytic.estimate_s"))


def test_hong_and_kims_time_is_a_reference_where_rows_have_it() -> None:
    """The column is taken as it is; rows collected before there was one have no such time."""
    table = make_rows(kernels=2, sizes=2)
    rival = ColumnReference(name="mwp_cwp")
    assert not rival.knows(table).any()
    schema = FeatureSchema(names=(*table.schema.names, "analytic.mwp_cwp_s"), version=1)
    times = np.array([0.5, 0.0, np.nan, 2.0])
    wider = table.with_features(schema, np.column_stack([table.features, times]))
    np.testing.assert_array_equal(rival.seconds(wider), [0.5, np.nan, np.nan, 2.0])
    fitted = make_model("mwp_cwp").fit(wider)
    np.testing.assert_array_equal(fitted.predict(wider.take(np.array([0, 3]))), [0.5, 2.0])
    with pytest.raises(InputError, match="2 of 4 rows have no time"):
        fitted.predict(wider)


def test_history_remembers_launches_and_knows_no_others() -> None:
    """A launch measured before comes back as its median, with the noise of repeats."""
    table = make_rows(kernels=4, sizes=2)
    fitted = HistoryModel().fit(table)
    np.testing.assert_array_equal(fitted.predict(table), table.seconds)
    narrow, wide = fitted.forecast(table), fitted.forecast(make_rows(kernels=4, seed=9))
    assert np.median(narrow.high / narrow.low) < np.median(wide.high / wide.low)
    unseen = make_rows(kernels=3, seed=9)
    np.testing.assert_array_equal(fitted.predict(unseen), unseen.linear_s)


def test_absent_values_become_the_median_and_an_indicator() -> None:
    """Absence moves a row only along its indicator, equal patterns share one, unseen ones none."""
    rng = np.random.default_rng(0)
    values = rng.uniform(1, 100, size=(50, 4))
    values[:25, 1:3] = np.nan
    values[:, 3] = np.nan
    names = ("static.a_count", "counters.b_count", "counters.c_count", "counters.d_count")
    found = fit_preparation(names, values)
    assert found.indicators.tolist() == [1]
    row = values[-1:].copy()
    absent = row.copy()
    absent[0, 1] = np.nan
    middle = row.copy()
    middle[0, 1] = np.expm1(found.fill[1])
    left, right = found.weigh(absent), found.weigh(middle)
    np.testing.assert_allclose(left[0, :4], right[0, :4], atol=1e-12)
    assert left[0, 4] - right[0, 4] == pytest.approx(found.weights[4])


def test_groups_weigh_alike() -> None:
    """A group of many columns has the same share of distances as one of few."""
    rng = np.random.default_rng(1)
    values = np.exp(rng.normal(size=(300, 21)))
    names = ("static.a_count", *(f"counters.c{place}_count" for place in range(20)))
    found = fit_preparation(names, values)
    spread = found.weigh(values).var(axis=0)
    assert spread[0] == pytest.approx(spread[1:].sum(), rel=0.1)


def test_preparation_refuses_nothing() -> None:
    """Without rows or columns there is nothing to learn."""
    with pytest.raises(InputError, match="rows and columns"):
        fit_preparation((), np.empty((5, 0)))
    with pytest.raises(InputError, match="columns given"):
        fit_preparation(("static.a_count",), np.ones((3, 1))).weigh(np.ones((3, 2)))


def test_tables_refuse_what_does_not_fit() -> None:
    """Unknown columns, other lengths and times that are none are refused."""
    for columns, said in (
        ({"secnods": [1.0]}, "secnods"),
        ({"seconds": [1.0, 2.0]}, "shape"),
        ({"seconds": [0.0]}, "positive"),
        ({"linear_s": [-1.0]}, "linear_s"),
        ({"seconds": [np.inf]}, "positive"),
    ):
        with pytest.raises(InputError, match=said):
            make_table(VOLUMES, [[1.0, 2.0]], columns)
    for features in (1.0, [1.0, 2.0], [[1.0]]):
        with pytest.raises(InputError, match="features of shape"):
            make_table(VOLUMES, features, {})


def test_digest_is_of_content_and_not_of_order() -> None:
    """Shuffled rows have the same digest, changed ones another."""
    table = make_rows(kernels=3)
    order = np.random.default_rng(0).permutation(len(table))
    assert table.take(order).digest == table.digest
    assert table.take(order[1:]).digest != table.digest
    features = table.features.copy()
    features[0, 0] += 1
    columns = {name: getattr(table, name) for name in ("keys", "seconds", "linear_s")}
    same = make_table(SCHEMA, table.features, columns)
    assert same.digest == table.digest
    assert make_table(SCHEMA, features, columns).digest != table.digest


def test_absent_features_are_nan() -> None:
    """A feature that the schema lacks is absent everywhere."""
    assert np.isnan(make_rows(kernels=2, sizes=1).column("static.atomic_sites_count")).all()
