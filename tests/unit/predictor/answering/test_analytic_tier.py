import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.features.vector.catalogue import make_schema
from kernelcast.models.catalogue import make_model
from kernelcast.models.persistence import ModelRegistry
from kernelcast.models.protocol import FittedModel
from kernelcast.models.validation import validate
from kernelcast.predictor.answering.analytic_tier import ASSUMED_FACTOR, Spread, find_spread
from kernelcast.predictor.answering.memory import Memory
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.predictor.answering.transfers import estimate_transfers
from kernelcast.records.arguments import Access
from kernelcast.records.device import DeviceKind
from kernelcast.records.feature_vector import make_vector
from kernelcast.records.machine import MachineDescription
from kernelcast.records.observed_times import summarise_runs
from kernelcast.records.training_table import TrainingTable
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.testing.fake_executor import make_problem
from kernelcast.testing.observations import make_observation
from kernelcast.training_data.store import open_store

SCHEMA = make_schema()


def find(
    device_id: str, trained_models: TrainedModels | None = None, memory: Memory | None = None
) -> Spread:
    """Find the spread of a device at 90 %."""
    found = trained_models.find(device_id, SCHEMA).found if trained_models else None
    return find_spread(device_id, 0.9, found=found, memory=memory, schema=SCHEMA)


def test_is_assumed_where_nothing_is_known(tmp_path: Path) -> None:
    """Without any known error the width is an assumption, and says so."""
    spread = find("device-0", memory=Memory(tmp_path / "none.sqlite"))
    assert spread.is_assumed
    assert spread.factor == ASSUMED_FACTOR
    assert "assumed" in spread.origin


def test_comes_from_the_validation_in_the_model(
    synthetic_table: TrainingTable, hybrid: FittedModel, tmp_path: Path
) -> None:
    """The analytic model's errors, validated beside the learned one, give the width."""
    models = [make_model("linear"), make_model("analytic")]
    report = validate(synthetic_table, models, synthetic_table.kernels)
    registry = ModelRegistry(url=str(tmp_path / "models"))
    registry.publish("hybrid/device-0", hybrid, SCHEMA, report)
    spread = find("device-0", TrainedModels(registry.url, shipped=""))
    analytic_s = synthetic_table.column("analytic.estimate_s")
    worst = float(np.nanmax(np.abs(np.log(synthetic_table.seconds / analytic_s))))
    assert not spread.is_assumed
    assert 1 < spread.factor <= math.exp(worst) * (1 + 1e-9)
    assert "validation" in spread.origin


def test_comes_from_the_devices_own_observations(tmp_path: Path) -> None:
    """Observations with analytic features tell how far the model is off; few kernels do not."""
    path = tmp_path / "rows.sqlite"
    with open_store(path) as store:
        for number in range(14):
            made = make_observation(number, kernels=7, devices=1)
            features = make_vector({"analytic.estimate_s": 0.1}, SCHEMA)
            runs = summarise_runs([0.1 * 1.3])
            store.add(replace(made, features=features, runs=runs))
        spread = find("device-0", memory=Memory(store))
        assert spread.factor == pytest.approx(1.3)
        assert "7 kernels" in spread.origin
        assert find("device-1", memory=Memory(store)).is_assumed


def test_transfers_count_what_is_read_and_what_is_written() -> None:
    """Buffers that are only read go one way; unknown ones go both; no description, no number."""

    def cost(value: float) -> Trait[float]:
        return Trait(value=value, source=TraitSource.MEASURED)

    machine = MachineDescription(
        id="d",
        name="a device",
        kind=DeviceKind.GPU,
        costs={
            "transfer_to_device_s": cost(1e-5),
            "transfer_to_device_bytes_per_s": cost(1e9),
            "transfer_from_device_s": cost(2e-5),
            "transfer_from_device_bytes_per_s": cost(2e9),
        },
    )
    problem = make_problem(work_groups=1000)
    size = problem.buffer_bytes
    both = estimate_transfers(problem, (), machine)
    assert both is not None
    assert both.to_device_s == pytest.approx(1e-5 + size / 1e9)
    assert both.from_device_s == pytest.approx(2e-5 + size / 2e9)
    read = estimate_transfers(problem, (Access.READ,), machine)
    assert read is not None
    assert (read.to_device_s, read.from_device_s) == (both.to_device_s, 0)
    written = estimate_transfers(problem, (Access.WRITE,), machine)
    assert written is not None
    assert (written.to_device_s, written.from_device_s) == (0, both.from_device_s)
    assert estimate_transfers(problem, (), None) is None
    assert estimate_transfers(problem, (), replace(machine, costs={})) is None
    nothing = estimate_transfers(replace(problem, arguments=()), (), None)
    assert nothing is not None
    assert (nothing.to_device_s, nothing.from_device_s) == (0, 0)
