import pytest

from kernelcast.models.catalogue import make_model
from kernelcast.models.protocol import TimeModel
from kernelcast.testing.model_conformance import TimeModelConformance

# One of each kind: the ablations differ from the hybrid only in their feature groups.
NAMES = (
    "two_point", "linear", "pooled_rate", "analytic", "history", "ridge", "random_forest",
    "gradient_boosting", "svr", "hybrid_without_counters", "hybrid", "hybrid_pooled",
)  # fmt: skip


@pytest.mark.parametrize("model", [make_model(name) for name in NAMES], ids=NAMES, scope="class")
class TestModels(TimeModelConformance):
    """Every kind of model of the catalogue."""

    def test_is_in_the_catalogue(self, model: TimeModel) -> None:
        """A model is found by the name that it has."""
        assert make_model(model.name) == model
