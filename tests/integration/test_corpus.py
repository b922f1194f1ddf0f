import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelcast.collection.corpus_checks import CheckStatus, check_in_session
from kernelcast.sampling.session import DeviceSession
from kernelcast.training_data.applications import Application, CorpusKernel, find_applications

pytestmark = pytest.mark.device

APPLICATIONS = find_applications()
IS_FULL = bool(os.environ.get("KERNELCAST_FULL_CORPUS"))


@pytest.fixture(scope="session")
def inputs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep generated inputs for all devices."""
    return tmp_path_factory.mktemp("corpus")


def pick(names: Sequence[str], salt: str) -> int:
    """Choose one of several by a hash, the same one in every run."""
    digest = hashlib.sha256(salt.encode()).digest()
    return int.from_bytes(digest[:4], "big") % len(names)


def choose_kernels(session: DeviceSession, application: Application) -> Sequence[CorpusKernel]:
    """Give all kernels on the embedded device, one of those that can run on any other."""
    device = session.description
    kernels = [one for one in application.kernels if device.has_fp64 or not one.uses_fp64]
    if IS_FULL or "Intel" in device.platform or not kernels:
        return kernels
    names = [one.name for one in kernels]
    return [kernels[pick(names, application.folder.name + device.id)]]


def choose_local_sizes(session: DeviceSession, kernel: CorpusKernel) -> Sequence[tuple[int, ...]]:
    """Give one local size, or all if the whole corpus was asked for."""
    if IS_FULL:
        return kernel.local_sizes
    names = [str(one) for one in kernel.local_sizes]
    return [kernel.local_sizes[pick(names, kernel.name + session.description.id)]]


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda one: one.folder.name)
def test_agrees_with_its_reference(
    session: DeviceSession, application: Application, inputs_folder: Path
) -> None:
    """Computes on the device what the reference computes, and changes nothing else."""
    kernels = choose_kernels(session, application)
    if not kernels:
        pytest.skip(f"{session.description.id} lacks double precision, which all kernels need")
    outcomes = [
        check_in_session(
            session,
            kernel,
            cache_folder=inputs_folder,
            local_sizes=tuple(choose_local_sizes(session, kernel)),
        )
        for kernel in kernels
    ]
    assert [one for one in outcomes if one.status is not CheckStatus.PASSED] == []
