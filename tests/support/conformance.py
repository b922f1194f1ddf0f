"""What every backend must do, as a suite that its tests inherit."""

from collections.abc import Sequence

import pytest

from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.backend import PreparedLaunch


class PreparedLaunchConformance:
    """Tests of a `PreparedLaunch`; a subclass gives it and three boxes that share no work-group."""

    @pytest.fixture
    def launch(self) -> PreparedLaunch:
        """Prepare a fresh launch."""
        raise NotImplementedError

    @pytest.fixture
    def sample_boxes(self) -> Sequence[GroupBox]:
        """Give boxes that the launch answers for."""
        raise NotImplementedError

    def test_gives_a_positive_duration_per_box(
        self, launch: PreparedLaunch, sample_boxes: Sequence[GroupBox]
    ) -> None:
        """Gives one positive duration for each box, in the order of the boxes."""
        durations = launch.time_boxes(sample_boxes)
        assert len(durations) == len(sample_boxes) >= 3
        assert all(0 < duration < float("inf") for duration in durations)

    def test_no_boxes_take_no_time(self, launch: PreparedLaunch) -> None:
        """Gives an empty list for no boxes."""
        assert launch.time_boxes([]) == []

    def test_whole_run_takes_time(self, launch: PreparedLaunch) -> None:
        """Gives a positive, finite duration for the whole launch."""
        assert 0 < launch.time_whole() < float("inf")

    def test_refuses_boxes_outside(
        self, launch: PreparedLaunch, sample_boxes: Sequence[GroupBox]
    ) -> None:
        """Refuses a box that leaves the index space, and answers for others afterwards."""
        counts = launch.ndrange.group_counts
        beyond = GroupBox(start=(counts[0], *(0 for _ in counts[1:])), shape=(1,) * len(counts))
        across = GroupBox(start=(0,) * len(counts), shape=tuple(n + 1 for n in counts))
        before = GroupBox(start=(-1, *(0 for _ in counts[1:])), shape=(1,) * len(counts))
        for outside in (beyond, across, before):
            with pytest.raises(InputError):
                launch.time_boxes([sample_boxes[0], outside])
        assert len(launch.time_boxes(sample_boxes[:1])) == 1

    def test_warming_up_and_settling_change_no_answer(
        self, launch: PreparedLaunch, sample_boxes: Sequence[GroupBox]
    ) -> None:
        """Answers for further boxes after a warm-up and after settling."""
        launch.warm_up(sample_boxes[0])
        launch.settle()
        assert len(launch.time_boxes(sample_boxes[1:])) == len(sample_boxes) - 1

    def test_says_what_it_is(self, launch: PreparedLaunch) -> None:
        """Names kernel and device and gives an index space whose local size is chosen."""
        assert launch.kernel_digest
        assert launch.device.id
        assert launch.ndrange.work_group_count >= 1
        assert launch.launch_overhead_s >= 0

    def test_saturation_point_can_be_used(self, launch: PreparedLaunch) -> None:
        """Gives a P_sat of at least one work-group."""
        point = launch.saturation
        assert point.p_sat.value >= 1
        assert point.concurrency >= 1
