"""A user who has nothing yet."""

from pathlib import Path

import pytest

from kernelcast.launches.data_folder import STORE_VARIABLE
from kernelcast.training.registry import MODELS_VARIABLE


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty data folder; another user's environment does not matter."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    monkeypatch.delenv(MODELS_VARIABLE, raising=False)
    monkeypatch.delenv(STORE_VARIABLE, raising=False)
    return tmp_path
