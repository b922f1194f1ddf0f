"""Estimates as a notebook, a terminal and a file show them."""

import json
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelcast
from kernelcast.predictor.launch_estimates import LaunchEstimate
from kernelcast.records.errors import DeviceError
from kernelcast.records.estimates import (
    DeviceAnswer,
    Interval,
    Measurement,
    draw_interval,
)
from support.builders import make_estimate
from support.observations import make_observation

ESTIMATE = make_estimate(
    device="A device", device_id="a-device", kernel="triad",
    interval=Interval(seconds=0.5, low=0.4, high=0.6, coverage=0.9),
    estimates_s={"linear": 0.5, "two_point": float("nan")},
)  # fmt: skip
MEASURED = replace(ESTIMATE, measurement=Measurement(durations_s=(0.4,)))
_SVG = "{http://www.w3.org/2000/svg}"


def _list_rows(html: str) -> list[tuple[str | None, str | None]]:
    return [(row[0].text, row[1].text) for row in ElementTree.fromstring(html) if len(row) == 2]


def test_a_notebook_shows_what_print_says_and_what_was_measured() -> None:
    """Has a row each, those of measurement and warnings where there are any; it is a record for
    repr."""
    assert str(ESTIMATE) == "triad on A device: 500 ms (400 - 600 ms with 90 % coverage), linear"
    assert repr(ESTIMATE).startswith("Estimate(device='A device'")
    assert dict(_list_rows(ESTIMATE._repr_html_())) == {
        "kernel": "triad",
        "device": "A device",
        "predicted": "500 ms (400 - 600 ms with 90 % coverage)",
        "tier": "linear",
    }
    more = dict(_list_rows(replace(MEASURED, warnings=("careful",))._repr_html_()))
    assert (more["measured"], more["warning"]) == ("400 ms", "careful")


def test_names_are_text_and_no_markup() -> None:
    """Escapes names of devices and kernels, and what warnings quote; asks no other address."""
    hostile = "<script>alert(1)</script>&\"'"
    html = replace(MEASURED, device=hostile, kernel=hostile, warnings=(hostile,))._repr_html_()
    assert "<script" not in html
    assert "://" not in html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert [text for _, text in _list_rows(html)].count(hostile) == 3


@given(
    ends=st.tuples(*[st.floats(1e-9, 1e6) for _ in range(3)]).map(sorted),
    measured_s=st.none() | st.floats(1e-9, 1e6),
)
def test_whatever_the_times_all_of_the_picture_is_seen(
    ends: list[float], measured_s: float | None
) -> None:
    """Keeps the dot and all strokes inside, and the dot between low and high."""
    picture = ElementTree.fromstring(draw_interval(ends[0], ends[1], ends[2], measured_s))
    width = float(picture.attrib["width"])
    (dot,) = picture.iter(f"{_SVG}circle")
    strokes = [one.attrib["d"] for one in picture.iter(f"{_SVG}path")]
    starts = [float(d.removeprefix("M").split(" ")[0]) for d in strokes]
    assert all(0 <= at <= width for at in (float(dot.attrib["cx"]), *starts))
    high = float(strokes[0].split("H")[1].split("M")[0])
    assert starts[0] <= float(dot.attrib["cx"]) <= high
    assert len(strokes) == (1 if measured_s is None else 2)


def test_a_dictionary_is_what_the_command_prints() -> None:
    """Is the answer's without the problem, and JSON takes it: what is no number is absent."""
    answer = DeviceAnswer(
        device_id="a-device", device="A device", problem="p", kernel="triad", estimate=MEASURED
    )
    content = MEASURED.to_dict()
    assert answer.to_dict() == {"problem": "p", **content}
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert (content["seconds"], content["low"], content["high"]) == (0.5, 0.4, 0.6)
    assert content["error"] == pytest.approx(0.25)
    absent = ("two_point", "pooled_rate", "analytic", "hybrid", "learned", "sizes", "history")
    assert content["estimates"] == {"linear": 0.5, **dict.fromkeys(absent)}
    assert "measured_seconds" not in ESTIMATE.to_dict()


def test_devices_without_an_answer_have_rows_too() -> None:
    """A batch has a row per launch and device; where one failed, the reason and no seconds."""
    launch = {"device_id": "a-device", "problem": "p"}
    answers = [
        DeviceAnswer(**launch, device="A device", kernel="triad", estimate=MEASURED),
        DeviceAnswer(**launch, device="A device", kernel="triad", error=DeviceError("it is gone")),
    ]
    frame = kernelcast.to_frame(answers)
    assert frame["seconds"].isna().tolist() == [False, True]
    assert frame["error_message"].tolist()[1] == "it is gone"
    assert answers[1].to_frame()["kernel"].tolist() == ["triad"]
    assert answers[1].to_dict() == {
        **launch, "device": "A device", "kernel": "triad", "error_message": "it is gone",
    }  # fmt: skip
    costs = LaunchEstimate(
        **launch, estimate=MEASURED, compile_s=1.0, to_device_s=0.1, from_device_s=0.2
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
