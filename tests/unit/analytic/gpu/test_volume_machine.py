"""Machine numbers, occupancy and hit rates of the GPU model."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.analytic.gpu.hit_rates import (
    HIT,
    HitRate,
    find_hit_rates,
    fit_hit_rate,
    read_hit_rates,
)
from kernelcast.analytic.gpu.machine import (
    FITTED,
    GpuMachine,
    compute_occupancy,
    read_machine,
    read_rates,
)
from kernelcast.expressions.accesses import ModelledLaunch
from kernelcast.launches.machines import find_machine
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange

GPUS = (
    "v100", "a100", "a100-80gb", "a40", "l40", "h100-pcie", "h200", "gh200", "mi100", "mi210",
    "mi300x", "mi300a", "rx-6900-xt",
)  # fmt: skip


def launch_of(size: int, *, registers: int | None = 32, local_bytes: int = 0) -> ModelledLaunch:
    return ModelledLaunch(
        kernel="k", ndrange=NDRange(global_size=(1 << 20,), local_size=(size,)), accesses=(),
        registers=registers, local_bytes=local_bytes,
    )  # fmt: skip


def machine_of(name: str) -> GpuMachine:
    return read_machine(find_machine(name))


@pytest.mark.parametrize("name", GPUS)
def test_every_shipped_gpu_can_be_read(name: str) -> None:
    """Every shipped GPU has what the models of volumes and times need, and holds a work-group."""
    machine = machine_of(name)
    assert machine.l1_sector_bytes <= machine.l1_line_bytes <= machine.l1_bytes < machine.l2_bytes
    assert compute_occupancy(launch_of(256), machine).work_groups >= 1
    family = "cdna" if name.startswith("mi") else "rdna" if name.startswith("rx") else "nvidia"
    assert machine.architecture.name == family
    rates = read_rates(find_machine(name), FITTED)
    assert rates.clock_hz > 0
    assert 0 < rates.dram_bytes_per_s(64, 0.5) <= rates.dram_bytes_per_s(4096, 0.5)


@pytest.mark.parametrize(
    ("name", "size", "registers", "local_bytes", "expected"),
    [
        ("v100", 1024, 33, 0, 1),
        ("v100", 33, 32, 0, 32),  # and by warps: a second one for one work-item
        ("v100", 256, 32, 40_000, 2),
        # A wavefront lives in one of four SIMDs; on CDNA 2 as AMD's compiler reports it.
        ("mi100", 256, 100, 0, 256 // 104),
        ("mi210", 256, 90, 0, 5),
    ],
)
def test_occupancy_is_that_of_the_described_machine(
    name: str, size: int, registers: int, local_bytes: int, expected: int
) -> None:
    machine = read_machine(replace(find_machine(name), max_work_items_per_unit=None))
    launch = launch_of(size, registers=registers, local_bytes=local_bytes)
    assert compute_occupancy(launch, machine).work_groups == expected


def test_what_does_not_fit_is_an_error() -> None:
    """A work-group that exceeds a limit is refused, and the limit is named."""
    with pytest.raises(InputError, match="local memory"):
        compute_occupancy(launch_of(64, local_bytes=1 << 20), machine_of("v100"))


@given(over=st.floats(0, 1e6), more=st.floats(0, 1e3))
def test_hit_rates_fall_with_oversubscription(over: float, more: float) -> None:
    """Hit rates are rates, and never rise with the oversubscription."""
    for rates in read_hit_rates().values():
        for rate in (rates.l1_load, rates.l2_overlap, rates.l2_store):
            assert 0 <= rate.at(over + more) <= rate.at(over) <= 1


def test_shipped_hit_rates_tell_where_they_come_from() -> None:
    """Every set has a provenance; an unknown one is an error that lists those there are."""
    assert all(len(one.provenance) > 20 for one in read_hit_rates().values())
    with pytest.raises(InputError, match="kernelcast, paper-2022, warpspeed-2025"):
        find_hit_rates("nobody")


@pytest.mark.parametrize("form", ["miss", HIT])
def test_fit_finds_the_constants_of_noisy_points(form: str) -> None:
    """Fitted constants lie within a few standard errors of the truth."""
    offset = 30.0 if form == "miss" else 1e-3
    truth = HitRate(a=1.0, b=offset, c=5.0, form=form)
    over = np.linspace(0.1, 2.5, 30)
    noise = np.random.default_rng(3).normal(0, 0.02, over.size)
    rate, errors = fit_hit_rate(over, [truth.at(x) + e for x, e in zip(over, noise, strict=True)],
                       form=form)  # fmt: skip
    assert abs(rate.b - offset) < 4 * errors["b"]
    assert abs(rate.c - 5.0) < 4 * errors["c"]
    assert rate.deviation == pytest.approx(0.02, rel=0.5)


def test_fit_refuses_what_it_cannot_fit() -> None:
    with pytest.raises(InputError, match="at least 4"):
        fit_hit_rate([1, 2], [0.5, 0.4])
    with pytest.raises(InputError, match="'miss' or 'hit'"):
        fit_hit_rate([1, 2, 3, 4], [0.5, 0.4, 0.3, 0.2], form="guess")
