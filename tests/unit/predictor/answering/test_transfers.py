from dataclasses import replace

import pytest

from kernelcast.predictor.answering.transfers import estimate_transfers
from kernelcast.records.arguments import Access
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait, TraitSource
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
    both = estimate_transfers(problem, (), machine)
    assert both is not None
    assert both.to_device_s == pytest.approx(1e-5 + size / 1e9)
    assert both.from_device_s == pytest.approx(2e-5 + size / 2e9)
    read = estimate_transfers(problem, (Access.READ,), machine)
    assert read is not None
    assert (read.to_device_s, read.from_device_s) == (both.to_device_s, 0)
    written = estimate_transfers(problem, (Access.WRITE,), machine)
    assert written is not None
    assert (written.to_device_s, written.from_device_s) == (0, both.from_device_s)
    assert estimate_transfers(problem, (), None) is None
    assert estimate_transfers(problem, (), replace(machine, costs={})) is None
    nothing = estimate_transfers(replace(problem, arguments=()), (), None)
    assert nothing is not None
    assert (nothing.to_device_s, nothing.from_device_s) == (0, 0)
