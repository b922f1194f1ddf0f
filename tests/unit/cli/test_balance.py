"""What ``kernelcast balance`` shows of a launch."""

from pathlib import Path

from kernelcast.cli.balance import chart_timeline, draw_timeline
from kernelcast.records.balance import (
    Activity,
    BalanceReport,
    Bar,
    DeviceShare,
    SlabSpace,
)
from kernelcast.records.ndrange import NDRange
from kernelcast.reports.drawing import save_figure


def test_each_device_and_the_host_are_drawn(tmp_path: Path) -> None:
    """What each did, as wide as the whole time; what is short is seen as well."""
    report = BalanceReport(
        kernel="k",
        space=SlabSpace(
            ndrange=NDRange(global_size=(64, 64), local_size=(8, 8)), axis=1, thickness=1
        ),
        merges={},
        shares=(
            DeviceShare(device_id="one", device="One", work_groups=48, share=0.75, real_s=0.5),
            DeviceShare(device_id="two", device="Two", work_groups=16, share=0.25, failure="gone"),
        ),
        bars=(
            Bar(device=0, activity=Activity.PREPARE, start_s=0.0, end_s=0.5),
            Bar(device=0, activity=Activity.RUN, start_s=0.5, end_s=0.9, work_groups=48),
            Bar(device=1, activity=Activity.SAMPLE, start_s=0.5, end_s=0.501, work_groups=2),
            Bar(device=2, activity=Activity.MERGE, start_s=0.9, end_s=1.0),
        ),
        estimated_s=0.5, real_s=0.4, prepare_s=0.5, merge_s=0.1, total_s=1.0, notes=(),
    )  # fmt: skip
    lines = draw_timeline(report, 20)
    assert lines[:3] == [
        "one  |..........########  |",
        "two  |          s         |",
        "host |                  mm|",
    ]
    assert "1.00 s" in lines[3]
    assert "# runs" in lines[4]
    assert "hands over" not in lines[4]
    figure = chart_timeline(report)
    names = {one.name for chart in figure.charts for one in chart.series}
    assert names == {"prepares", "samples (done work)", "runs", "merges", "estimated end"}
    save_figure(tmp_path / "timeline.png", figure)
    assert (tmp_path / "timeline.png").stat().st_size > 5000
