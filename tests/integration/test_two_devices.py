"""The example of a schedule over two devices does what its page says."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import kernelcast
from kernelcast.predictor import predictor as predictor_module
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.discovery import find_devices

pytestmark = pytest.mark.device
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/two_devices/schedule.py"
SIZE = 1 << 20


@pytest.fixture
def example() -> Iterator[ModuleType]:
    """Import the example; with fewer than two devices there is nothing to schedule."""
    found = [description.id for description, _ in find_devices()]
    if len(found) < 2:
        pytest.skip(f"two OpenCL devices are needed; here is {', '.join(found)}")
    spec = importlib.util.spec_from_file_location("two_devices_schedule", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_next_round_counts_what_has_run(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a launch has run, its own time counts; both devices compute the polynomial.

    How much it counts is the fusion's to say, and that depends on how quiet the machine is.
    """
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    places = [example.prepare(device, SIZE) for device in example.choose_two(None)]
    values = np.linspace(0, 1, SIZE, dtype=np.float32)
    expected = np.polyval(1 / np.arange(1, example.DEGREE + 1), values)
    for place in places:
        np.testing.assert_allclose(example.run(place, values)[0], expected, rtol=1e-4)
    have_run: set[str] = set()
    with kernelcast.Predictor() as predictor:
        for _ in range(len(places) + 1):  # on both, if it comes to that: then one runs again
            told, reason, _ = example.schedule(predictor, places, values)
            assert reason.startswith(f"{told.device_id} (by kernel alone; transfers are not known")
            observed = [one for one in told.list_pieces() if one.kind == "observed"]
            assert [one.weight > 0 for one in observed] == [True] * (told.device_id in have_run)
            have_run.add(told.device_id)


def test_transfers_decide_where_they_are_known(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever kernel is faster, the device whose data take an hour is not chosen."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    places = [example.prepare(device, SIZE) for device in example.choose_two(None)]
    values = np.zeros(SIZE, dtype=np.float32)
    with kernelcast.Predictor() as predictor:
        ids = [one.device_id for one in predictor.estimate_many([one.launch for one in places])]
        for slow, fast in (ids, reversed(ids)):
            monkeypatch.setattr(
                predictor_module,
                "find_sound_machine",
                lambda device_id, slow=slow: make_machine(3600 if device_id == slow else 1e-6),
            )
            told, reason, _ = example.schedule(predictor, places, values)
            assert told.device_id == fast
            assert reason == f"{fast} (by kernel and transfers)"


def make_machine(transfer_s: float) -> MachineDescription:
    """Describe a device to which, and from which, each buffer takes so long."""
    costs = {
        f"transfer_{way}_device_{unit}": Trait(value=value, source=TraitSource.MEASURED)
        for way in ("to", "from")
        for unit, value in (("s", transfer_s), ("bytes_per_s", 1e12))
    }
    return MachineDescription(id="d", name="a device", kind=DeviceKind.GPU, costs=costs)
