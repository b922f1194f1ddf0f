"""Where corrections come from."""

import numpy as np
import pytest

from kernelcast.models.attribution import attribute
from kernelcast.models.time_models import TimeModel, make_model
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable, make_table
from support.synthetic_rows import make_rows

NAMES = (
    "static.loops_count", "static.buffers_count", "compiler.registers_count",
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


@pytest.mark.parametrize("name", ["hybrid", "plain"])
def test_contributions_add_up(name: str) -> None:
    """Shares of groups are the correction less that without any; the column that decides has the
    largest."""
    if name == "hybrid":
        fitted = make_model("hybrid").fit(make_rows(kernels=16, sizes=4, seed=7))
        rows = make_rows(kernels=4, sizes=3, seed=8)
    else:
        fitted = TimeModel(name="plain", learner="ridge", is_gated=False).fit(make_driven())
        rows = make_driven(6, seed=8)
        driven = attribute(fitted, make_driven(1, seed=5))
        assert (driven.columns[0]["name"], driven.groups[0]["group"]) == (DRIVER, "counters")
    found = attribute(fitted, rows)
    assert found.rows == len(rows)
    assert sum(one["contribution"] for one in found.groups) == pytest.approx(
        found.correction - found.base
    )
    ratio = fitted.forecast(rows)[0] / fitted.model.refer(rows) - 1
    assert found.correction == pytest.approx(float(ratio.mean()))
