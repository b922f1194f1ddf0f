"""What speaks against a calibration."""

from dataclasses import replace
from datetime import date

from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.machine import InstructionFacts, MachineDescription
from kernelcast.reports.machine import find_age_days, list_doubts

TODAY = date(2026, 6, 1)


def _measured(value: float, half_width: float = 0.01) -> Trait[float]:
    reach = value * half_width
    return Trait(value=value, low=value - reach, high=value + reach, source=TraitSource.MEASURED)


def _machine(single: Trait[float], double: Trait[float]) -> MachineDescription:
    return MachineDescription(
        id="x", name="X", kind=DeviceKind.CPU, calibrated_on="2026-05-31",
        instructions=(
            InstructionFacts(name="fp32", peak_per_s=single),
            InstructionFacts(name="fp64", peak_per_s=double),
        ),
    )  # fmt: skip


def test_a_good_calibration_has_no_doubts() -> None:
    """Equal peaks, narrow intervals, yesterday's; double precision that is faster was disturbed."""
    machine = _machine(_measured(1e10), _measured(1e10))
    assert list_doubts(machine, TODAY) == []
    assert find_age_days(machine, TODAY) == 1
    assert find_age_days(replace(machine, calibrated_on=""), TODAY) is None  # a shipped one
    [doubt] = list_doubts(_machine(_measured(1e10), _measured(1.5e10)), TODAY)
    assert "disturbed" in doubt
    assert "double precision" in doubt


def test_wide_intervals_age_and_gaps_are_told() -> None:
    """Each has its own sentence."""
    machine = _machine(_measured(1e10, 0.5), _measured(5e9, 0.5))
    machine = replace(machine, calibrated_on="2025-01-01", not_obtained={"walk": "too slow"})
    told = " ".join(list_doubts(machine, TODAY))
    assert "known to 50 % only" in told
    assert "days old" in told
    assert "1 numbers could not be obtained" in told
