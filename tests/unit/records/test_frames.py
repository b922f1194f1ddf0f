import subprocess
import sys
from dataclasses import replace

import pytest

import kernelcast
from kernelcast.predictor.launch_estimates import LaunchEstimate
from kernelcast.records.errors import DeviceError
from kernelcast.records.estimates import DeviceAnswer, Estimate, Interval, Measurement, Tier
from kernelcast.records.ndrange import NDRange
from support.observations import make_observation

ESTIMATE = Estimate(
    device="A device", device_id="a-device", kernel="triad",
    ndrange=NDRange(global_size=(1024,), local_size=(64,)), compute_units=2, saturation=None,
    sample_work_groups=(0, 0), sampled_work_groups=0,
    interval=Interval(seconds=0.5, low=0.4, high=0.6, coverage=0.9), tier=Tier.LINEAR,
    estimates_s={"linear": 0.5, "two_point": 0.45}, sampling_seconds=0.01, overhead_seconds=0.2,
    measurement=Measurement(durations_s=(0.4,)),
)  # fmt: skip


def test_devices_without_an_answer_have_rows_too() -> None:
    """A batch has a row per launch and device; where one failed, the reason and no seconds."""
    launch = {"device_id": "a-device", "problem": "p"}
    answers = [
        DeviceAnswer(**launch, device="A device", kernel="triad", estimate=ESTIMATE),
        DeviceAnswer(**launch, device="A device", kernel="triad", error=DeviceError("it is gone")),
    ]
    frame = kernelcast.to_frame(answers)
    assert frame["seconds"].isna().tolist() == [False, True]
    assert frame["error_message"].tolist()[1] == "it is gone"
    assert answers[1].to_frame()["kernel"].tolist() == ["triad"]
    costs = LaunchEstimate(
        **launch, estimate=ESTIMATE, compile_s=1.0, to_device_s=0.1, from_device_s=0.2
    )
    row = kernelcast.to_frame([costs]).iloc[0]
    assert row["total_s"] == pytest.approx(0.8)
    assert row["compile_s"] == 1.0


def test_observations_are_rows_with_a_column_per_feature() -> None:
    """Features stand under their own names; what a row lacks is absent."""
    rows = [make_observation(1), replace(make_observation(2), features=None, samples=())]
    frame = kernelcast.to_frame(rows)
    assert rows[0].features is not None
    for name, value in rows[0].features.as_dict().items():
        assert frame[name].tolist()[0] == value
        assert frame[name].isna().tolist() == [False, True]
    assert frame["seconds"].tolist() == [one.seconds for one in rows]
    assert frame["kernel"].tolist() == [one.launch.kernel.label for one in rows]
    assert rows[0].to_frame()["key"].tolist() == [rows[0].key]


@pytest.mark.parametrize(
    "module", ["kernelcast", "kernelcast.cli.app", "kernelcast.predictor.predictor"]
)
def test_pandas_is_loaded_when_a_frame_is_made(module: str) -> None:
    """Neither the package, nor the program, nor what gives kept answers waits for pandas."""
    code = f"import sys, {module}; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
