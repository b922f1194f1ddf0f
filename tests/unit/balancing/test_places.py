"""Which cores a device is bound to, how a launch is cut, what a caller may give."""

from dataclasses import replace

import numpy as np
import pytest

from kernelcast.balancing.balancer import (
    choose_split,
    cut_axis,
    fill_buffers,
    read_host_arguments,
    share_cores,
)
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.cli.balance import place_by_text
from kernelcast.records.arguments import LocalArgument, SamplerArgument, ScalarArgument
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, OverrunError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.host import bind_to_cores, read_cores
from support.builders import make_description
from support.problems import write_problem

_CPU = make_description()
_GPU = replace(_CPU, id="gpu", kind=DeviceKind.GPU)
_KNOWN = {"cpu": _CPU, "other": replace(_CPU, id="other"), "gpu": _GPU}


def _share(*places: DevicePlace, cores: int = 4) -> list[tuple[int, ...]]:
    return [one.cores for one in share_cores(places, _KNOWN, range(cores))]


def test_cpu_devices_share_the_cores() -> None:
    """Two CPU runtimes get half each of what is left; a GPU and a lone CPU device get none."""
    cpu, other, gpu = (DevicePlace(device_id=name) for name in _KNOWN)
    assert _share(cpu, other) == [(0, 1), (2, 3)]
    assert _share(cpu, gpu) == [(), ()]
    assert _share(cpu, gpu, other, cores=3) == [(0,), (), (1, 2)]
    assert _share(replace(cpu, cores=(1, 2)), other) == [(1, 2), (0, 3)]
    assert _share(replace(cpu, cores=(0, 1, 2, 3)), other) == [(0, 1, 2, 3), ()]


def test_cores_are_read_by_name() -> None:
    """Names are the ids as given; one that stands twice gets its cores in order."""
    places = place_by_text(["intel", "pocl", "intel"], "intel=0,pocl=1+3-4,intel=2")
    assert [one.cores for one in places] == [(0,), (1, 3, 4), (2,)]
    with pytest.raises(InputError, match="named: intel, pocl"):
        place_by_text(["intel", "pocl"], "rusticl=0")
    for text in ("", "a", "1-", "0,1", "-1"):
        with pytest.raises(InputError, match="for example 0 or 0-3"):
            read_cores(text)
    environment: dict[str, str] = {}
    bind_to_cores((), environment)
    assert not environment


def _problem(body: str, size: tuple[int, ...], local: tuple[int, ...]) -> Problem:
    head = "kernel void k(global float *a) { int i = get_global_id(0), j = get_global_id(1);"
    arguments, _ = read_host_arguments([np.zeros(size, np.float32)])
    return write_problem(f"{head} {body} }}", *arguments, items=size, local=local)


@pytest.mark.parametrize(
    ("body", "size", "axis"),
    [
        ("a[j * 256 + i] += 1;", (256, 256), 1),
        ("a[j * 256 + i] += 1;", (256, 4), 0),
        ("if (j == 0) for (int r = 0; r < 256; ++r) a[r * 256 + i] *= 2;", (256, 256), 1),
    ],
)
def test_dimension_that_proves_most_is_cut(body: str, size: tuple[int, int], axis: int) -> None:
    """The slowest one if there is a choice; a single row of work-groups is cut along it."""
    found = choose_split(_problem(body, size, (16, 4)), BalanceSettings())
    assert found.is_proven
    assert found.space.axis == axis


def test_launches_that_cannot_be_split_are_refused() -> None:
    """Sums over work-groups, with line and way out; what leaves a buffer by its source."""
    with pytest.raises(InputError, match=r"not split over devices: line 1: a\[0\].*--independent"):
        choose_split(_problem("a[0] += i;", (256,), (16,)), BalanceSettings())
    with pytest.raises(OverrunError, match=r"leaves the buffer a"):
        choose_split(_problem("a[i + 1] = 1;", (256,), (16,)), BalanceSettings())


def test_images_are_not_shared() -> None:
    """Devices exchange bytes of buffers; what they would not understand is refused by position."""
    sampler = SamplerArgument(filter="nearest", address="none", normalized=False)
    problem = write_problem("kernel void k(sampler_t s) {}", sampler)
    with pytest.raises(InputError, match=r"argument 0: .* images and samplers"):
        fill_buffers(problem, seed=0)


def test_slabs_are_multiples_of_what_runs_at_once() -> None:
    """Many work-groups are cut in multiples; few are cut finely."""
    many = NDRange(global_size=(80_000,), local_size=(8,))
    assert cut_axis(many, 0, 2048, unit=6).thickness == 6
    few = NDRange(global_size=(160,), local_size=(8,))
    assert cut_axis(few, 0, 2048, unit=6).thickness == 1
    rows = NDRange(global_size=(48, 4096), local_size=(8, 1))
    assert cut_axis(rows, 1, 2048, unit=6).thickness == 2


def test_arguments_are_described_by_their_values() -> None:
    """Arrays are buffers, NumPy scalars scalars, a read-only array of lanes a vector."""
    lanes = np.array([1, 2, 3, 4], np.int32)
    lanes.flags.writeable = False
    described, arrays = read_host_arguments(
        [np.zeros((3, 5), np.float32), np.int16(7), lanes, LocalArgument(bytes=64)]
    )
    assert list(arrays) == [0]
    assert [str(getattr(one, "element", one)) for one in described[:3]] == [
        "float32", "int16", "int32x4",
    ]  # fmt: skip
    assert isinstance(described[2], ScalarArgument)
    # Structures are their bytes; an array's lie in the caller's memory, which takes the results.
    table = np.zeros(3, [("key", np.int32), ("weight", np.float64)])
    described, arrays = read_host_arguments([table, table[0]])
    assert [str(getattr(one, "element", "")) for one in described] == ["uint8", "uint8x12"]
    arrays[0][:4] = (1, 0, 0, 0)
    assert table["key"].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "int given; give a NumPy array"),
        (np.zeros((4, 4))[:, 1], "not contiguous"),
        (np.zeros(3, np.complex64), "element type 'complex64' is unknown"),
        (np.zeros(0), "is empty"),
    ],
)
def test_values_that_no_kernel_takes(value: object, message: str) -> None:
    """Each is refused with its position and what to give."""
    with pytest.raises(InputError, match=f"argument 0: .*{message}"):
        read_host_arguments([value])
    whole = np.zeros(10)  # copies would not overlap any more
    with pytest.raises(InputError, match="arguments 0 and 1 share memory"):
        read_host_arguments([whole[:6], whole[5:]])
