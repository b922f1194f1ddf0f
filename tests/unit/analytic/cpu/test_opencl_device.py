from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_device
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError
from support.opencl_cpu import make_machine

DEVICE = read_device(make_machine())


def test_reads_lanes_and_width_from_rates() -> None:
    """Compares vectors with scalars, and work-items together with one alone."""
    assert (DEVICE.cores, DEVICE.lanes, DEVICE.width) == (2, 16, 16)
    assert DEVICE.lanes_of(64) == 8
    assert read_device(make_machine(width=1)).width == 1
    assert DEVICE.add_s == pytest.approx(0.5 / 4e9)


def add_by_halves() -> CpuDevice:
    """Give a core with registers of 512 bits that adds one half after the other."""
    fp32 = make_machine().instruction("fp32")
    assert fp32 is not None
    slow = {chains: Trait(value=one.value / 2, source=TraitSource.MEASURED)
            for chains, one in fp32.completion_latency_s.items()}  # fmt: skip
    return read_device(
        replace(make_machine(), instructions=(replace(fp32, completion_latency_s=slow),),
                warp_width=Trait(value=16, source=TraitSource.MEASURED))
    )  # fmt: skip


def test_registers_have_masks_where_sixteen_work_items_share_one() -> None:
    """Knows registers of 512 bits also where a core adds their halves one after the other."""
    device = add_by_halves()
    assert (device.lanes, device.width, device.has_masks) == (8, 16, True)
    assert not read_device(make_machine(width=8)).has_masks


def test_counts_no_more_cores_than_the_peak_needs() -> None:
    """Takes what is reported, unless fewer cores of the measured speed make up the peak."""
    machine = make_machine()
    units = Trait(value=8, source=TraitSource.REPORTED)
    assert read_device(replace(machine, compute_units=units)).cores < 8


def test_names_what_is_missing() -> None:
    """Says which number is missing, and which command measures it."""
    machine = make_machine()
    with pytest.raises(InputError, match="calibrate --only instructions-fp32"):
        read_device(replace(machine, instructions=()))
    with pytest.raises(InputError, match="calibrate --only caches"):
        read_device(replace(machine, caches=()))
    with pytest.raises(InputError, match="calibrate --only bandwidth"):
        read_device(replace(machine, memories=()))
    with pytest.raises(InputError, match="the CPU model needs a CPU"):
        read_device(replace(machine, kind=DeviceKind.GPU))
