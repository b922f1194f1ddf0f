"""The tables of ``kernelcast devices``."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.table import Table

from kernelcast.cli.devices import _lay_out, _lay_out_narrow
from kernelcast.records.device import DeviceReport, TimerCheck
from support.builders import make_description

CPU = replace(
    make_description(compute_units=2),
    id="intel-amd-epyc-0000", name="AMD EPYC", platform="Intel(R) OpenCL", driver="2026.22.10",
    local_memory_bytes=2**18, extensions=("cl_khr_fp64", "cl_khr_suggested_local_work_size"),
)  # fmt: skip
LONG = replace(CPU, id="pocl-cascadelake-intel-xeon-0000", name=f"pthread-{'Intel Xeon ' * 6}")
REPORTS = [
    DeviceReport(description=CPU, timer=TimerCheck(event_s=1.0, host_s=1.0, agrees=True)),
    DeviceReport(description=LONG, broken_reason="the trial kernel did not build " * 4),
]


def _print(table: Table, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_devices_can_be_read_at_80_columns() -> None:
    """Folds long names and reasons, and never an id, an extension or a number."""
    lines = _print(_lay_out_narrow(REPORTS), 80)
    assert max(map(len, lines)) <= 80
    words = {word for line in lines for word in line.split()}
    assert {CPU.id, LONG.id, "khr_suggested_local_work_size", "agrees", "ok", "broken:"} <= words
    assert any("256 KiB" in line for line in lines)


@pytest.mark.parametrize("lay_out", [_lay_out, _lay_out_narrow])
def test_both_tables_say_the_same(lay_out: object) -> None:
    """Shows every fact of a device, on a wide terminal and on a narrow one."""
    assert callable(lay_out)
    shown = " ".join(" ".join(_print(lay_out(REPORTS[:1]), 400)).split())
    facts = (CPU.id, CPU.name, CPU.platform, CPU.driver, "2", "256 KiB", "khr_fp64", "agrees", "ok")
    assert all(fact in shown for fact in facts)
