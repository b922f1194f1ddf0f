"""Stored observations as evidence, and models that are calibrated with it."""

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.models.evidence.model import load_evidence, model_to_json
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.records.observation import Observation
from kernelcast.training.evidence import calibrate_evidence, make_row, read_launches
from kernelcast.training.settings import CPU_MODEL, RowFilter
from kernelcast.training.table import machines_beside
from kernelcast.training_data.parquet import read_parquet

DEVICE = "rusticl-llvmpipe-amd-epyc-2965"
PATH = Path(str(files("kernelcast"))) / "training_data" / "measured" / f"{DEVICE}.parquet"


@pytest.fixture(scope="module")
def observations() -> list[Observation]:
    """Read the shipped rows of a device."""
    return [*read_parquet(PATH)]


def test_two_moments_stand_for_an_estimates(observations: list[Observation]) -> None:
    """Gives each launch the samples that a first answer has, at most two moments of them."""
    launches = read_launches(observations)
    assert {one.sampler for one in launches} == {
        max(one.sampler for one in observations if one.samples)
    }
    for one in launches:
        row = make_row(one)
        assert 1 <= len({moment.moment for moment in row.moments}) <= 2
        assert np.isfinite(row.size.log_work[0])


def test_models_of_device_runtime_and_cpu_are_calibrated_and_shown(
    observations: list[Observation], tmp_path: Path
) -> None:
    """Publishes one each, as versions that can be looked at; they name the rows' CPU model. A
    device of too few kernels is left to the models of others."""
    assert calibrate_evidence(observations[:20], lambda _: None) == []
    known = read_launches(observations, RowFilter())
    few = sorted(known, key=lambda one: one.launch.kernel.label)[:40]  # too few for a correction
    registry = VersionedFiles(url=str(tmp_path))
    found = calibrate_evidence(few, machines_beside([PATH]))
    assert [name for name, *_ in found] == [
        f"evidence/{DEVICE}", "evidence_cpu", "evidence_runtime/rusticl",
    ]  # fmt: skip
    for name, model, devices in found:
        version = registry.publish(name, model_to_json(model))
        assert load_evidence(registry, name, version).facts == model.facts
        assert devices == [DEVICE]
        assert registry.find_model(name).used == version
        assert CPU_MODEL not in model.facts  # the rows do not say
    ours = [replace(one, versions={**one.versions, CPU_MODEL: str(REVISION)}) for one in few]
    ((_, model, _),) = calibrate_evidence(ours, lambda _: None, [found[0][0]])
    assert model.facts[CPU_MODEL] == REVISION


def test_a_shipped_model_is_made_anew_of_the_same_rows() -> None:
    """The same rows in any order give the same file, but for the libraries that made it."""
    folder = Path(str(files("kernelcast")))
    measured, files_of = folder / "training_data/measured", folder / "models/pretrained"
    name = "evidence_runtime/rusticl"
    rows = [*read_parquet(measured / "rusticl-llvmpipe-amd-epyc-2b30.parquet")]
    ((_, made, _),) = calibrate_evidence(reversed(rows), machines_beside([measured]), [name])
    shipped = load_evidence(VersionedFiles(url=str(files_of)), name)
    held, wanted = (json.loads(model_to_json(one)) for one in (made, shipped))
    for one in (held, wanted):
        one["facts"].pop(CPU_MODEL, None)  # which a new revision of the CPU model changes
        one["forms"].pop("moment", None)  # which older files hold twice
    libraries = {key for key in held["facts"] if key.startswith("version.")}
    assert libraries
    if all(held["facts"][key] == wanted["facts"][key] for key in libraries):
        assert held == wanted
    assert held["facts"]["data_digest"] == wanted["facts"]["data_digest"]
