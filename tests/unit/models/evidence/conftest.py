"""Launches to calibrate with, and what they teach."""

import pytest

from kernelcast.models.evidence.calibration import EvidenceRow, calibrate
from kernelcast.models.evidence.model import EvidenceModel
from support.evidence import make_rows


@pytest.fixture(scope="session")
def rows() -> list[EvidenceRow]:
    """Make launches to calibrate with."""
    return make_rows()


@pytest.fixture(scope="session")
def model(rows: list[EvidenceRow]) -> EvidenceModel:
    """Calibrate with them."""
    return calibrate(rows)
