"""What ``kernelcast tune`` shows, and how it ends."""

from dataclasses import replace

from kernelcast.cli.tune import list_best
from kernelcast.reports.presenter import write_lines
from kernelcast.tuning.report import TunedConfiguration, TuneModels, TuneReport


def test_table_has_columns_for_what_is_known() -> None:
    """Of sampled and measured times; where every configuration is barred it pretends no pick."""
    one = TunedConfiguration(
        number=0, parameters={"LX": 8}, local_size=(8, 2), predicted_s=0.001, limiter="L1"
    )
    report = TuneReport(
        problem="p", kernel="k", device="A", device_id="a", names=("LX",),
        models=TuneModels.ANALYTIC, configurations=(one,), models_s=0.1, warnings=("beware",),
    )  # fmt: skip
    names = [*list_best(report, top=1).columns]
    assert names == ["LX", "local size", "predicted", "limited by"]
    measured = replace(report, configurations=(replace(one, sampled_s=0.002, runs_s=(0.003,)),))
    names = [*list_best(measured, top=1).columns]
    assert names == ["LX", "local size", "predicted", "sampled", "measured", "limited by"]
    assert write_lines("tune.txt", report=report)[-1] == "warning: beware"
    barred = TunedConfiguration(number=0, parameters={"LX": 8}, obstacle="too large")
    nothing = replace(report, configurations=(barred,))
    assert nothing.pick is None
    assert "none of them can be launched" in write_lines("tune.txt", report=nothing)
