"""What kernels of the examples and of the corpus compute on devices, against NumPy."""

import hashlib
import os
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelcast.collection.corpus_problems import CheckStatus, check_in_session, find_difference
from kernelcast.launches.problem_file import read_template
from kernelcast.sampling.problems import run_whole
from kernelcast.sampling.session import DeviceSession
from kernelcast.training_data.applications import Application, find_applications
from kernelcast.training_data.reference import Reference

pytestmark = pytest.mark.device

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/reference.py"))
APPLICATIONS = find_applications()
IS_FULL = bool(os.environ.get("KERNELCAST_FULL_CORPUS"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_agree_with_their_references(session: DeviceSession, path: Path) -> None:
    """Computes on the device what the NumPy reference computes, and changes nothing else."""
    told = runpy.run_path(str(path))
    reference = Reference(expected=told["expected"], small=told["SMALL"], tolerance=told["RTOL"])
    template = read_template(next(path.parent.glob("*.yaml")))
    parameters = {**template.first, **reference.small}
    problem = template.make(parameters)
    if "double" in problem.kernel.source and not session.description.has_fp64:
        pytest.skip("the device has no double precision")
    with session.lock:
        run = run_whole(session, problem, seed=11)
    assert find_difference(run, reference, parameters) is None


@pytest.fixture(scope="session")
def inputs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep generated inputs for all devices."""
    return tmp_path_factory.mktemp("corpus")


def pick(choices: Sequence[Any], salt: str) -> Sequence[Any]:
    """Choose one of several by a hash, the same one in every run; all where that is wanted."""
    digest = hashlib.sha256(salt.encode()).digest()
    return choices if IS_FULL else [choices[int.from_bytes(digest[:4], "big") % len(choices)]]


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda one: one.folder.name)
def test_the_corpus_agrees_with_its_references(
    session: DeviceSession, application: Application, inputs_folder: Path
) -> None:
    """All kernels on the embedded device, one of those that can run on any other."""
    device = session.description
    kernels = [one for one in application.kernels if device.has_fp64 or not one.uses_fp64]
    if not kernels:
        pytest.skip(f"{device.id} lacks double precision, which all kernels need")
    if "Intel" not in device.platform:
        kernels = [*pick(kernels, application.folder.name + device.id)]
    outcomes = [
        check_in_session(
            session, kernel, cache_folder=inputs_folder,
            local_sizes=tuple(pick(kernel.local_sizes, kernel.name + device.id)),
        )
        for kernel in kernels
    ]  # fmt: skip
    assert [one for one in outcomes if one.status is not CheckStatus.PASSED] == []
