from itertools import pairwise

import numpy as np
import pytest

from kernelcast.models.catalogue import make_model
from kernelcast.models.persistence.format import read_model, write_model
from kernelcast.models.protocol import FittedModel, TimeModel
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable
from support.synthetic_rows import make_rows

# One of each kind: the ablations differ from the hybrid only in their feature groups.
NAMES = (
    "two_point", "linear", "pooled_rate", "analytic", "history", "ridge", "random_forest",
    "gradient_boosting", "svr", "hybrid_without_counters", "hybrid", "hybrid_pooled",
)  # fmt: skip


@pytest.mark.parametrize("model", [make_model(name) for name in NAMES], ids=NAMES, scope="class")
class TestModels:
    """What every kind of model of the catalogue must do."""

    @pytest.fixture(scope="class")
    @classmethod
    def table(cls) -> TrainingTable:
        """Give launches to learn from."""
        return make_rows(kernels=12, sizes=4, seed=1)

    @pytest.fixture(scope="class")
    @classmethod
    def unseen(cls) -> TrainingTable:
        """Give launches of other kernels."""
        return make_rows(kernels=5, sizes=3, seed=2)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, model: TimeModel, table: TrainingTable) -> FittedModel:
        """Give the model, trained."""
        return model.fit(table)

    def test_predicts_positive_times_of_unseen_kernels(
        self, fitted: FittedModel, unseen: TrainingTable
    ) -> None:
        """Gives one finite positive time per row."""
        seconds = fitted.predict(unseen)
        assert seconds.shape == (len(unseen),)
        assert np.isfinite(seconds).all()
        assert (seconds > 0).all()

    def test_needs_no_measured_time_to_predict(
        self, fitted: FittedModel, unseen: TrainingTable
    ) -> None:
        """Gives the same times where those to predict are not in the table."""
        blind = unseen.assign(seconds=np.full(len(unseen), np.nan))
        np.testing.assert_array_equal(fitted.predict(blind), fitted.predict(unseen))

    def test_forecast_agrees_and_is_ordered(
        self, fitted: FittedModel, unseen: TrainingTable
    ) -> None:
        """Intervals hold the prediction, which is that of `predict`."""
        forecast = fitted.forecast(unseen)
        np.testing.assert_allclose(forecast.seconds, fitted.predict(unseen), rtol=1e-12)
        assert (forecast.low <= forecast.seconds).all()
        assert (forecast.seconds <= forecast.high).all()
        assert forecast.in_domain.dtype == np.bool_

    def test_wider_coverage_is_never_narrower(
        self, fitted: FittedModel, unseen: TrainingTable
    ) -> None:
        """The higher the coverage, the wider the interval."""
        widths = [
            (one.high / one.low)
            for one in (fitted.forecast(unseen, share) for share in (0.5, 0.8, 0.9, 0.99))
        ]
        assert all((low <= high * (1 + 1e-12)).all() for low, high in pairwise(widths))

    def test_refuses_a_coverage_that_is_no_share(
        self, fitted: FittedModel, unseen: TrainingTable
    ) -> None:
        """A coverage lies between 0 and 1."""
        for coverage in (0.0, 1.0, 90.0):
            with pytest.raises(InputError, match="coverage"):
                fitted.forecast(unseen, coverage)

    def test_order_of_rows_does_not_matter(
        self, model: TimeModel, fitted: FittedModel, table: TrainingTable, unseen: TrainingTable
    ) -> None:
        """Training on shuffled rows gives the same predictions."""
        shuffled = table.take(np.random.default_rng(5).permutation(len(table)))
        np.testing.assert_array_equal(model.fit(shuffled).predict(unseen), fitted.predict(unseen))

    def test_rows_are_predicted_one_by_one_alike(
        self, fitted: FittedModel, unseen: TrainingTable
    ) -> None:
        """A row's prediction does not depend on its neighbours."""
        alone = [fitted.predict(unseen.take(np.array([row])))[0] for row in range(len(unseen))]
        np.testing.assert_allclose(alone, fitted.predict(unseen), rtol=1e-12)

    def test_answers_for_no_rows(self, fitted: FittedModel, unseen: TrainingTable) -> None:
        """Gives nothing for nothing."""
        nothing = unseen.take(np.array([], dtype=np.intp))
        assert fitted.predict(nothing).shape == (0,)
        assert fitted.forecast(nothing).high.shape == (0,)

    def test_refuses_another_schema_and_names_both(
        self, fitted: FittedModel, unseen: TrainingTable
    ) -> None:
        """A table with other features is refused."""
        other = FeatureSchema(names=unseen.schema.names, version=unseen.schema.version + 1)
        with pytest.raises(InputError, match=rf"(?s){unseen.schema.id}.*{other.id}"):
            fitted.predict(unseen.with_features(other, unseen.features))

    def test_refuses_a_single_group(self, model: TimeModel, table: TrainingTable) -> None:
        """Without a second group nothing can be held out."""
        with pytest.raises(InputError, match="two groups"):
            model.fit(table.take(table.kernels == table.kernels[0]))

    def test_survives_a_file(
        self, fitted: FittedModel, table: TrainingTable, unseen: TrainingTable
    ) -> None:
        """A stored model predicts the same to the last bit."""
        stored = read_model(write_model(fitted, table.schema), "a file", table.schema).model
        before, after = fitted.forecast(unseen), stored.forecast(unseen)
        np.testing.assert_array_equal(after.seconds, before.seconds)
        np.testing.assert_array_equal(after.high, before.high)
        assert stored.describe() == fitted.describe()

    def test_is_in_the_catalogue(self, model: TimeModel) -> None:
        """A model is found by the name that it has."""
        assert make_model(model.name) == model
