from dataclasses import replace

import pytest

from kernelcast.predictor.launch_estimates import estimate_transfers
from kernelcast.records.arguments import Access
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.machine import MachineDescription
from support.fake_executor import make_problem


def test_transfers_count_what_is_read_and_what_is_written() -> None:
    """Buffers that are only read go one way; unknown ones go both; no description, no number."""

    def cost(value: float) -> Trait[float]:
        return Trait(value=value, source=TraitSource.MEASURED)

    machine = MachineDescription(
        id="d",
        name="a device",
        kind=DeviceKind.GPU,
        costs={
            "transfer_to_device_s": cost(1e-5),
            "transfer_to_device_bytes_per_s": cost(1e9),
            "transfer_from_device_s": cost(2e-5),
            "transfer_from_device_bytes_per_s": cost(2e9),
        },
    )
    problem = make_problem(work_groups=1000)
    size = problem.buffer_bytes
    to_s, from_s = 1e-5 + size / 1e9, 2e-5 + size / 2e9
    cases = ((), (to_s, from_s)), ((Access.READ,), (to_s, 0)), ((Access.WRITE,), (0, from_s))
    for accesses, found in cases:
        assert estimate_transfers(problem, accesses, machine) == pytest.approx(found)
    assert estimate_transfers(problem, (), None) is None
    assert estimate_transfers(problem, (), replace(machine, costs={})) is None
    assert estimate_transfers(replace(problem, arguments=()), (), None) == (0, 0)
