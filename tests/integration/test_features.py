import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.features import (
    FeatureSettings,
    compose_vector,
    read_in_session,
    read_source_features,
)
from kernelcast.launches.machines import read_machine, write_machine
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.device import DeviceKind
from kernelcast.records.feature_vector import FeatureGroup
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

ROOT = Path(__file__).resolve().parents[2]
SMALL = {"N": 256}
EVERY = frozenset(FeatureGroup)
# Only NVIDIA's compiler tells registers; miss rates depend on what the caches' model can say.
NOT_EVERYWHERE = {"registers per work-item", "L1/L2 miss rate"}


@pytest.fixture
def calibrated(
    session: DeviceSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> DeviceSession:
    """Give the device with a description, as if it had been calibrated: another CPU's numbers."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    machine = read_machine(ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml")
    (tmp_path / "machines").mkdir()
    device_id = session.description.id
    write_machine(tmp_path / f"machines/{device_id}.yaml", replace(machine, id=device_id))
    return session


def test_table_1_is_there_on_every_device(calibrated: DeviceSession) -> None:
    """Gives every feature of the sampling paper, without privileges, on any vendor's device."""
    session = calibrated
    problem = read_problem(ROOT / "examples/matmul_tiled/matmul_tiled.yaml", parameters=SMALL)
    settings = FeatureSettings(groups=EVERY)
    features = read_source_features(problem, settings)
    found = read_in_session(session, problem, settings)
    vector = compose_vector(features, found)
    page = (ROOT / "docs/reference/features.md").read_text(encoding="utf-8")
    table_1 = page.partition("## Table 1")[2].partition("## `static`")[0]
    wanted = {
        name for line in table_1.splitlines()
        if line.startswith("| ") and line.split(" | ")[0][2:] not in NOT_EVERYWHERE
        for name in re.findall(r"`(.+?)`", line)
    }  # fmt: skip
    assert len(wanted) == 15
    assert wanted <= set(vector.names)
    assert found.notes == []
    assert vector.as_dict()["analytic.estimate_s"] > 0
    assert vector.as_dict()["counters.measured_flag"] == 1
    assert session.description.kind is not DeviceKind.CUSTOM
