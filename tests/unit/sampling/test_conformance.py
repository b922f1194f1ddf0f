from collections.abc import Sequence

import pytest

from kernelcast.records.ndrange import GroupBox, NDRange
from support.conformance import PreparedLaunchConformance
from support.fakes import SyntheticLaunch

NDRANGE = NDRange(global_size=(64, 36), local_size=(8, 5), global_offset=(3, 0))
BOXES = [
    GroupBox(start=(0, 0), shape=(2, 1)),
    GroupBox(start=(2, 0), shape=(1, 8)),
    GroupBox(start=(4, 3), shape=(4, 5)),
]


def make_synthetic() -> SyntheticLaunch:
    """Make a launch whose work grows along both dimensions."""
    return SyntheticLaunch(NDRANGE, lambda at: 1e-6 * (1 + at[0] + at[1]))


class TestSyntheticLaunch(PreparedLaunchConformance):
    """The fake that sampling is judged with."""

    @pytest.fixture
    def launch(self) -> SyntheticLaunch:
        """Prepare a fresh launch."""
        return make_synthetic()

    @pytest.fixture
    def sample_boxes(self) -> Sequence[GroupBox]:
        """Give boxes that the launch answers for."""
        return BOXES
