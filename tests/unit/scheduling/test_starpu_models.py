"""Footprints, regressions and the text of StarPU's performance models."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.scheduling.starpu.codelets import (
    Wanted,
    Worker,
    WorkerKind,
    footprint_of_data,
    footprint_of_size_base,
    parse_worker,
)
from kernelcast.scheduling.starpu.models import (
    Entry,
    ExpectedTime,
    fit_offset_power_law,
    fit_power_law,
    write_model,
)

CPU = Worker(kind=WorkerKind.CPU)
OPENCL = Worker(kind=WorkerKind.OPENCL, device=1)


def make_entries(*seconds: float, worker: Worker = CPU) -> list[Entry]:
    """Make entries whose sizes double."""
    return [
        (
            Wanted(symbol="triad", worker=worker, parameters={}, footprint=n,
                   size_bytes=1000 * 2**n, flops=0.0),
            ExpectedTime(seconds=one, deviation_s=one / 10, origin="given"),
        )
        for n, one in enumerate(seconds)
    ]  # fmt: skip


def test_footprints_are_starpus() -> None:
    """CRC-32C, highest bit first, over sizes, then the number of the interface."""
    assert footprint_of_data("vector", (1024,), 4) == 0xDD20D08B
    assert footprint_of_data("matrix", (64, 32), 8) == 0x2154786E
    assert footprint_of_data("block", (4, 5, 6), 8) == 0xE82DDE36
    assert footprint_of_data("variable", (), 12) == 0x4A60DF81
    assert footprint_of_size_base(4096) == 0xCABFB472


def test_what_is_not_known_is_written_empty() -> None:
    """StarPU numbers implementations by their order, and takes nan for no regression."""
    second = Worker(kind=WorkerKind.CPU, implementation=1)
    text = write_model(make_entries(1.0, worker=second))
    first, second_part = text.split("# Model for cpu0_impl")[1:]
    assert "# number of entries\n0\n" in first
    assert "# number of entries\n1\n" in second_part
    assert write_model(make_entries(1.0, worker=OPENCL)).count("nan") == 5
    assert fit_power_law(make_entries(1.0)) is None


@given(st.floats(1e-3, 1e3), st.floats(0.2, 3))
def test_power_laws_are_found(alpha: float, beta: float) -> None:
    """Times that follow one give it back."""
    law = fit_power_law(make_entries(*(alpha * (1000 * 2**n) ** beta / 1e6 for n in range(4))))
    assert law is not None
    assert law[0] == pytest.approx(alpha, rel=1e-6)
    assert law[1] == pytest.approx(beta, rel=1e-6)


@given(st.floats(0.5, 2), st.floats(0, 500))
def test_an_offset_is_found(b: float, c: float) -> None:
    """The curve passes through times that follow one."""
    a = 1000 / 1000**b
    times = [a * (1000 * 2**n) ** b + c for n in range(6)]
    found = fit_offset_power_law(make_entries(*(one / 1e6 for one in times)))
    assert found is not None
    for n, time in enumerate(times):
        assert found[0] * (1000 * 2**n) ** found[1] + found[2] == pytest.approx(time, rel=2e-3)


@given(st.sampled_from([WorkerKind.CUDA, WorkerKind.OPENCL]), st.integers(0, 7), st.integers(0, 3))
def test_workers_survive_their_names(kind: WorkerKind, device: int, implementation: int) -> None:
    """A printed worker is read as itself; what StarPU lacks is refused."""
    worker = Worker(kind=kind, device=device, implementation=implementation)
    assert parse_worker(str(worker)) == worker
    for text in ("gpu", "cpu1", "opencl0_impl7", "opencl-1"):
        with pytest.raises(InputError, match="worker"):
            parse_worker(text)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_times_that_starpu_could_not_use_are_refused(seconds: float) -> None:
    """Says what was expected."""
    with pytest.raises(InputError, match="above 0"):
        ExpectedTime(seconds=seconds, origin="given")
