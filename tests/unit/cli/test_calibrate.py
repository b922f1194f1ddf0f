import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result

from kernelcast.calibration.calibration import Calibration, CalibrationSettings
from kernelcast.launches.machines import find_machine, machine_path, read_machine
from kernelcast.records.device import DeviceDescription, DeviceKind, Progress
from kernelcast.records.errors import KernelRunError
from kernelcast.records.machine import MachineDescription
from kernelcast.reports.machine import plan_figures, save_machine_page
from support.builders import make_description
from support.commands import run_command

CALIBRATED = Path(__file__).parents[3] / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"
DEVICE = make_description()
OTHER = replace(DEVICE, id="other-device-1111")


MACHINE = replace(
    (_found := read_machine(CALIBRATED)), id=DEVICE.id, name="Fake <device> & co",
    not_obtained={"peak/fp64": "no <double> precision"},
    curves=tuple({one.name.partition("/")[0]: one for one in _found.curves[::-1]}.values()),
)  # fmt: skip
Ask = Callable[..., Result]
Outcomes = dict[str, MachineDescription | BaseException]


@pytest.fixture
def outcomes() -> Outcomes:
    return {DEVICE.id: MACHINE}


@pytest.fixture
def ask(outcomes: Outcomes, monkeypatch: pytest.MonkeyPatch) -> Ask:
    def calibrate(
        device: DeviceDescription, settings: CalibrationSettings, *,
        report: Callable[[Progress], None],
    ) -> Calibration:  # fmt: skip
        report(Progress(device_id=device.id, done=0, total=1, title="walk", remaining_s=3.0))
        report(Progress(device_id=device.id, done=1, total=2, title="copy", remaining_s=240.0))
        outcome = outcomes[device.id]
        if isinstance(outcome, BaseException):
            raise outcome
        path = settings.output or machine_path(device.id)
        return Calibration(machine=outcome, path=path, durations_s={"walk": 2.5},
                           resumed=("launch",), failed={"barrier": "it died"})  # fmt: skip

    monkeypatch.setattr(
        "kernelcast.cli.calibrate.choose_devices",
        lambda _: [one for one in (DEVICE, OTHER) if one.id in outcomes],
    )
    monkeypatch.setattr("kernelcast.cli.calibrate.calibrate_device", calibrate)
    return partial(run_command, "calibrate")


def test_ends_with_the_papers_table_and_the_file(ask: Ask) -> None:
    """Prints performance, latencies by ILP, ridge point, memories, and where the file is.

    Where a minute does not suffice who asked for one is told, once for a device.
    """
    result = ask()
    assert result.exit_code == 0
    for part in (
        "268 Gop/s", "ILP 1: 480 ps = 1.96 cy", "ILP 4: 125 ps", "54.6 GB/s", "48 KiB (r)",
        "12.4 ns = 50.7 cy", "peak/fp64: no <double> precision", "(r) reported",
        "1 microbenchmarks in 2.50 s, 1 more had run before; written to",
    ):  # fmt: skip
        assert part in result.stdout
    assert f"{DEVICE.id}: barrier failed: it died" in result.stderr
    told = "takes about 4 min on a machine as busy as this one is now"
    assert [one.stderr.count(told) for one in (result, ask("--quick"))] == [0, 1]


def test_a_device_that_fails_does_not_stop_the_others(ask: Ask, outcomes: Outcomes) -> None:
    """Shows the other devices, names the error and ends with status 1; an interrupt ends with 130,
    and says how to go on."""
    outcomes[OTHER.id] = KeyboardInterrupt()
    result = ask()
    assert (result.exit_code, "268 Gop/s" in result.stdout) == (130, True)
    assert "the same command goes on from there" in result.stderr
    outcomes.update({DEVICE.id: KernelRunError("all died"), OTHER.id: MACHINE})
    result = ask()
    assert (result.exit_code, "268 Gop/s" in result.stdout) == (1, True)
    assert "all died" in result.stderr
    told = json.loads(ask("--json").stdout)
    assert told[1] == {
        "device": DEVICE.name, "device_id": DEVICE.id, "error_message": "all died"
    }  # fmt: skip


def test_writes_a_page_with_every_figure(ask: Ask, tmp_path: Path) -> None:
    """Writes a page of its own: figures inside, nothing from elsewhere, texts escaped; leaves out
    what a bare description has nothing to show for."""
    page = tmp_path / "r.html"
    assert f"report written to {page}" in ask("--report", page).stdout
    text = page.read_text()
    assert text.count("<svg") == len(plan_figures(MACHINE)) == 9
    for part in ("Occupancy roofline", "Fig. 3", "Fig. 5", "Fig. 6", "Fig. 7", "Not obtained"):
        assert part in text
    assert "Fake &lt;device&gt; &amp; co" in text
    assert "no &lt;double&gt; precision" in text
    ids = re.findall(r'\bid="([^"]*)"', re.sub(r"<clipPath.*?</clipPath>", "", text))
    assert "figure_1" not in ids
    assert "currentColor" in text
    bare = MachineDescription(id="a", name="A", kind=DeviceKind.CPU)
    save_machine_page(page, [bare])
    assert "<svg" not in page.read_text()
    save_machine_page(page, [bare, find_machine("skylake-sp")])
    assert page.read_text().count("<article>") == 2
