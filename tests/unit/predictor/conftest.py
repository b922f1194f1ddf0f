"""Models and predictors that need no device."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelcast.features.vector import make_schema
from kernelcast.models.time_models import FittedModel, make_model
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.processes import LaunchRow
from kernelcast.records.training_table import TrainingTable
from kernelcast.training_data.store import Store, open_store
from support.corrections import publish_correction
from support.fake_executor import FakeExecutor, row_of, widen_schema
from support.synthetic_rows import make_rows


@pytest.fixture(scope="session")
def synthetic_table() -> TrainingTable:
    return widen_schema(make_rows(kernels=10, sizes=4, seed=1), make_schema())


@pytest.fixture(scope="session")
def hybrid(synthetic_table: TrainingTable) -> FittedModel:
    return make_model("hybrid").fit(synthetic_table)


@pytest.fixture
def registry(tmp_path: Path, hybrid: FittedModel) -> VersionedFiles:
    found = VersionedFiles(url=str(tmp_path / "models"))
    publish_correction(found, hybrid)
    return found


@pytest.fixture(scope="session")
def known_row(synthetic_table: TrainingTable) -> LaunchRow:
    return row_of(synthetic_table, 5)


@pytest.fixture
def executor() -> FakeExecutor:
    """Give a device that takes 0.5 s for the problem."""
    return FakeExecutor()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "rows.sqlite") as found:
        yield found
