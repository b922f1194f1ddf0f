import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.records.samples import LaunchTime
from kernelcast.sampling import device_findings
from kernelcast.sampling.behaviour import DeviceBehaviour
from kernelcast.sampling.device_check import DeviceTrial
from kernelcast.sampling.device_findings import DeviceFindings
from support.builders import make_description

DEVICE = make_description()
TRIAL = DeviceTrial(
    event_s=0.01,
    host_s=0.0101,
    agrees=True,
    steps=64, settled_s=5e-4,
    launch_overhead_s=1e-5,
    asleep_s=3e-6,
    cores=2,
)  # fmt: skip
BEHAVIOUR = DeviceBehaviour(
    saturated_from=4, settle_steps=512,
    settled_s=LaunchTime(3e-4, clock_s=3.1e-4),
)  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no other program at work."""
    monkeypatch.setattr(device_findings, "count_others", lambda: 0)


def never() -> DeviceTrial:
    """Fail if something is tried that is known."""
    pytest.fail("tried again")


def test_what_one_process_has_found_the_next_one_knows(tmp_path: Path) -> None:
    """Keeps trial and behaviour side by side."""
    first = DeviceFindings(DEVICE, tmp_path)
    assert first.recall_trial(lambda: TRIAL) == TRIAL
    assert first.recall_behaviour(lambda: BEHAVIOUR) == BEHAVIOUR
    second = DeviceFindings(DEVICE, tmp_path)
    assert second.recall_trial(never) == TRIAL
    assert second.recall_behaviour(lambda: pytest.fail("tried again")) == BEHAVIOUR


def test_another_driver_is_tried(tmp_path: Path) -> None:
    """Takes nothing from before an update."""
    DeviceFindings(DEVICE, tmp_path).recall_trial(lambda: TRIAL)
    other = replace(TRIAL, event_s=0.02)
    updated = DeviceFindings(replace(DEVICE, driver="another"), tmp_path)
    assert updated.recall_trial(lambda: other) == other


def test_old_findings_are_tried_again(tmp_path: Path) -> None:
    """Believes nothing for ever."""
    DeviceFindings(DEVICE, tmp_path).recall_trial(lambda: TRIAL)
    [path] = tmp_path.glob("devices/*.json")
    os.utime(path, (0, 0))
    other = replace(TRIAL, event_s=0.02)
    assert DeviceFindings(DEVICE, tmp_path).recall_trial(lambda: other) == other


def test_what_other_programs_may_have_disturbed_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeps a timer that agrees all the same: nothing can disturb it into that."""
    monkeypatch.setattr(device_findings, "count_others", lambda: 3)
    findings = DeviceFindings(DEVICE, tmp_path)
    wrong = replace(TRIAL, agrees=False)
    findings.recall_trial(lambda: wrong)
    findings.recall_behaviour(lambda: BEHAVIOUR)
    assert not [*tmp_path.rglob("*.json")]
    findings.recall_trial(lambda: TRIAL)
    assert findings.recall_trial(never) == TRIAL


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"made_for": 1, "findings": 2}'])
def test_a_file_that_cannot_be_read_counts_as_none(tmp_path: Path, text: str) -> None:
    """Tries the device instead."""
    findings = DeviceFindings(DEVICE, tmp_path)
    findings.recall_trial(lambda: TRIAL)
    [path] = tmp_path.glob("devices/*.json")
    path.write_text(text)
    assert findings.recall_trial(lambda: TRIAL) == TRIAL


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    """Tries each time."""
    tried: list[DeviceTrial] = []
    for _ in range(2):
        DeviceFindings(DEVICE).recall_trial(lambda: tried.append(TRIAL) or TRIAL)
    assert len(tried) == 2
    assert not [*tmp_path.iterdir()]
