"""Devices are compared by what is known of all of them: unknown transfers are not free ones."""

from dataclasses import replace

import pytest

from kernelcast.predictor.launch_estimates import (
    Compared,
    LaunchEstimate,
    choose_fastest,
    estimate_transfers,
)
from kernelcast.records.arguments import Access
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError, KernelRunError
from kernelcast.records.machine import MachineDescription
from support.builders import make_estimate
from support.fake_executor import make_problem


def _entry(
    device_id: str, kernel_s: float, *transfers_s: float, problem: str = "p"
) -> LaunchEstimate:
    to_device_s, from_device_s = transfers_s or (None, None)
    estimate = make_estimate(kernel_s, device_id=device_id)
    return LaunchEstimate(
        problem=problem,
        device_id=device_id,
        estimate=estimate,
        to_device_s=to_device_s,
        from_device_s=from_device_s,
    )


_FAILED = LaunchEstimate(problem="p", device_id="broken", error=KernelRunError("died"))


def test_known_transfers_decide() -> None:
    """Where all are known, the quickest kernel need not win; else the total is no number."""
    far, near = _entry("far", 1.0, 2.0, 2.0), _entry("near", 3.0, 0.0, 0.0)
    found = choose_fastest([far, near])
    assert (found.entry.device_id, found.seconds) == ("near", 3.0)
    assert found.compared is Compared.WITH_TRANSFERS
    assert str(found) == "near (by kernel and transfers)"
    half = replace(far, from_device_s=None)
    assert [one.total_s for one in (far, half, _FAILED)] == [5.0, None, None]


def test_a_device_of_unknown_transfers_is_not_preferred_for_that() -> None:
    """Its slower kernel does not beat a faster one that says what its transfers cost."""
    calibrated, unknown = _entry("calibrated", 1.0, 1.0, 1.0), _entry("unknown", 2.0)
    found = choose_fastest([calibrated, unknown, _FAILED])
    assert (found.entry, found.seconds) == (calibrated, 1.0)
    assert found.compared is Compared.KERNEL_ALONE
    assert str(found) == (
        "calibrated (by kernel alone; transfers are not known on unknown; no answer from broken)"
    )


def test_what_cannot_be_compared_is_refused() -> None:
    """Several launches, or none that was answered."""
    with pytest.raises(InputError, match="one problem"):
        choose_fastest([_entry("a", 1.0), _entry("b", 1.0, problem="other")])
    with pytest.raises(InputError, match="broken: died"):
        choose_fastest([_FAILED])


def test_transfers_count_what_is_read_and_what_is_written() -> None:
    """Buffers that are only read go one way; unknown ones go both; no description, no number."""
    costs = {
        "transfer_to_device_s": 1e-5, "transfer_to_device_bytes_per_s": 1e9,
        "transfer_from_device_s": 2e-5, "transfer_from_device_bytes_per_s": 2e9,
    }  # fmt: skip
    machine = MachineDescription(
        id="d", name="a device", kind=DeviceKind.GPU,
        costs={name: Trait(value=one, source=TraitSource.MEASURED) for name, one in costs.items()},
    )  # fmt: skip
    problem = make_problem(work_groups=1000)
    size = problem.buffer_bytes
    to_s, from_s = 1e-5 + size / 1e9, 2e-5 + size / 2e9
    cases = ((), (to_s, from_s)), ((Access.READ,), (to_s, 0)), ((Access.WRITE,), (0, from_s))
    for accesses, found in cases:
        assert estimate_transfers(problem, accesses, machine) == pytest.approx(found)
    assert estimate_transfers(problem, (), None) is None
    assert estimate_transfers(problem, (), replace(machine, costs={})) is None
    assert estimate_transfers(replace(problem, arguments=()), (), None) == (0, 0)
