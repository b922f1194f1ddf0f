"""What compilers and drivers tell of kernels, on devices that exist as answers only."""

import struct
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from kernelcast.compiling.facts import read_ptxas_log
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling import compiler_facts, launch
from kernelcast.sampling.compiler_facts import (
    parse_code_object,
    parse_ptx,
    read_compiler_statistics,
)
from kernelcast.sampling.instrumented import list_clocks
from kernelcast.sampling.opencl import cl
from support.builders import make_description

KERNEL = Kernel(name="triad", source="kernel void triad() { barrier(CLK_LOCAL_MEM_FENCE); }")
NDRANGE = NDRange(global_size=(1 << 20,), local_size=(256,))
AMD, NVIDIA = "cl_amd_device_attribute_query", "cl_nv_device_attribute_query"

TEXTS = Path(__file__).parents[2] / "data" / "compilers"
TWO_KERNELS, HELPER_FIRST, OLD_DEVICE, MODULE = (
    (TEXTS / name).read_text()
    for name in ("two_kernels.log", "helper_first.log", "old_device.log", "module.ptx")
)


REDUCE = Kernel(name="reduce", source="kernel void reduce() {}", build_options=("-DN=1",))


def test_statistics_are_asked_for_once_in_every_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Misses the cache of a compiler that is silent on what it has seen before; does not build
    where the option is not known."""
    built: list[tuple[str, tuple[str, ...]]] = []

    def build(_context: None, _device: None, source: str, options: tuple[str, ...]) -> str:
        built.append((source, options))
        return "" if built.count((source, options)) > 1 else TWO_KERNELS

    monkeypatch.setattr(compiler_facts, "build_program", build)
    monkeypatch.setattr(compiler_facts, "read_build_log", lambda program, _: program)
    for extension, times in (("cl_nv_compiler_options", 3), (NVIDIA, 0)):
        for _ in range(3):
            session: Any = SimpleNamespace(
                context=None, device=None, build_logs={},
                description=SimpleNamespace(extensions=(extension,)),
            )  # fmt: skip
            found = [read_compiler_statistics(session, REDUCE) for _ in range(2)]
            registers = [one.get("registers_per_work_item") for one in found]
            assert registers == [40 if times else None] * 2
        assert [options for _, options in built] == [("-DN=1", "-cl-nv-verbose")] * times
        built.clear()


@pytest.mark.parametrize(
    ("log", "name", "numbers"),
    [
        (TWO_KERNELS, "reduce", (40, 48, 16, 24)),
        (TWO_KERNELS, "other", (8, 0, 0, 0)),
        (HELPER_FIRST, "k", (27, 8, 2, 3)),  # not those of a function that it calls
        (OLD_DEVICE, "k", (15, 0, 0, 0)),
        *((log, "k", None) for log in (
            "", "Device build done; kernel <k> was vectorized (8)",
            "ptxas info : Compiling entry function 'k' for 'sm_80'",
        )),
    ],
)  # fmt: skip
def test_build_logs_tell_of_each_kernel(
    log: str, name: str, numbers: tuple[int, int, int, int] | None
) -> None:
    """Reads registers, stack and spills of the kernel asked for; silence is not zero."""
    told = attrgetter("registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes")
    found = read_ptxas_log(log).get(name)
    assert (found and told(found)) == numbers


FORMS = """/* by hand */ .version 7.0
.visible .entry k ( ) {
    .reg .b32 %a, %b, %c<4>; .reg .v4 .f32 %v; .shared .align 4 .b8 tile[64];
    .local .f32 x; .local .align 8 .f64 y[3]; .local .align 4 .b8 a[3][5]; .local .b16 b[2];
    .local .v2 .f32 pair; ret;
}"""


@pytest.mark.parametrize(
    ("ptx", "name", "numbers"),
    [
        (FORMS, "k", (4 + 24 + 15 + 4 + 8, 6 + 1, 1)),
        # Registers: 2 single, 3 + 9 + 12 + 7 in ranges, 1 in the call. Instructions: 6 before the
        # loop, 2 in it, 3 of the call, the barrier, the branch and the return.
        (MODULE, "staged", (1200, 34, 14)),
        (MODULE, "staged_more", (0, 0, 1)),
        *((MODULE, name, ()) for name in ("stag", "helper", "other", "staged.more")),
        (MODULE[:-3], "staged", ()),
        ("", "staged", ()),
        ("poclbin" + MODULE, "staged", ()),
    ],
)
def test_ptx_tells_of_each_kernel(ptx: str, name: str, numbers: tuple[int, ...]) -> None:
    """Counts private bytes, registers and instructions of one kernel, not of its neighbours."""
    assert tuple(parse_ptx(ptx.encode() + b"\0", name).values()) == numbers


def write_code_object(*kernels: dict[str, object], before: bytes = b"\x7fELF...") -> bytes:
    held = msgpack.packb({"amdhsa.version": [1, 2], "amdhsa.kernels": list(kernels)})
    return before + struct.pack("<III", 7, len(held), 32) + b"AMDGPU\0\0" + held + b"\0" * 9


def describe(name: str, *, vgprs: int, wavefront: int = 64) -> dict[str, object]:
    return {
        ".name": name, ".symbol": f"{name}.kd", ".vgpr_count": vgprs, ".sgpr_count": 24,
        ".vgpr_spill_count": 0, ".wavefront_size": wavefront, ".args": [{".size": 8}],
        ".group_segment_fixed_size": 4096, ".private_segment_fixed_size": 16,
    }  # fmt: skip


def make_session(extension: str, *, device_name: str, vendor: str, **answers: object) -> Any:  # noqa: ANN401 - as much of a session as is asked for
    device = SimpleNamespace(
        platform=SimpleNamespace(vendor=vendor, version="OpenCL 2.1"), version="OpenCL 2.0",
        extensions=extension, **answers,
    )  # fmt: skip
    return SimpleNamespace(
        device=device,
        description=SimpleNamespace(name=device_name, extensions=(extension,), compute_units=1),
        whole_kernel=lambda _: SimpleNamespace(program=None),
    )


def make_compiled(multiple: int, local_bytes: int = 0) -> Any:  # noqa: ANN401 - as much as is asked for
    info = cl.kernel_work_group_info
    answers = {
        info.LOCAL_MEM_SIZE: local_bytes, info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE: multiple,
    }  # fmt: skip
    return SimpleNamespace(get_work_group_info=lambda what, _: answers[what])


def test_code_objects_tell_of_each_kernel() -> None:
    """Finds a kernel among others, after bytes that only look like a note."""
    lookalike = struct.pack("<III", 7, 3, 32) + b"AMDGPU\0\0" + b"abc"
    binary = write_code_object(
        describe("other", vgprs=9), describe("triad", vgprs=40), before=lookalike
    )
    assert parse_code_object(binary, "triad") == {
        "registers_per_work_item": 40, "private_bytes_per_work_item": 16,
        "scalar_registers_per_sub_group": 24, "wavefront_size": 64,
    }  # fmt: skip
    assert parse_code_object(binary, "copy") == {}
    for other in (b"", b".version 7.8", write_code_object()[:40]):
        assert parse_code_object(other, "triad") == {}


@pytest.mark.parametrize(
    ("gfx", "vgprs", "wavefront", "p_sat"),
    [
        ("gfx90a:sramecc+:xnack-", 40, 64, 8),  # 8 waves a SIMD, 4 SIMDs, 4 waves a work-group
        ("gfx90a:sramecc+:xnack-", 128, 64, 4),  # 512 registers: 4 waves a SIMD
        ("gfx1030", 128, 32, 4),  # 1024 registers: 8 waves a SIMD, 4 SIMDs, 8 waves a work-group
    ],
)
def test_registers_of_code_objects_limit_occupancy(
    monkeypatch: pytest.MonkeyPatch, gfx: str, vgprs: int, wavefront: int, p_sat: int
) -> None:
    """Computes P_sat on AMD's GPUs with the registers that the compiler took."""
    binary = write_code_object(describe("triad", vgprs=vgprs, wavefront=wavefront))
    monkeypatch.setattr(compiler_facts, "read_binary", lambda *_: binary)
    session = make_session(AMD, device_name=gfx, vendor="Advanced Micro Devices, Inc.")
    compiled = make_compiled(multiple=wavefront)
    found = launch.compute_for_kernel(session, compiled, KERNEL, NDRANGE)
    assert found is not None
    assert found[0] == p_sat


def test_what_fits_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses a work-group with more local memory than an SM gives to one."""
    monkeypatch.setattr(launch, "read_compiler_statistics", lambda *_: {})
    session = make_session(
        NVIDIA, device_name="NVIDIA H100", vendor="NVIDIA Corporation",
        compute_capability_major_nv=9, compute_capability_minor_nv=0,
    )  # fmt: skip
    compiled = make_compiled(multiple=32, local_bytes=228 << 10)
    with pytest.raises(DeviceLimitError, match="local memory"):
        launch.compute_for_kernel(session, compiled, KERNEL, NDRANGE)


@pytest.mark.parametrize(
    ("extension", "answer", "size"),
    [(NVIDIA, {"warp_size_nv": 32}, 32), (AMD, {"wavefront_width_amd": 64}, 64), (AMD, {}, None)],
)
def test_warps_and_wavefronts_stand_for_sub_groups(
    extension: str, answer: dict[str, int], size: int | None
) -> None:
    """Asks the vendor's query where the device has no sub-groups; believes a refusal."""
    session = make_session(extension, device_name="any", vendor="any", **answer)
    found = compiler_facts._ask_sub_groups(session, None, (24, 4))  # type: ignore[arg-type]
    assert {name: one.value for name, one in found.items()} == (
        {} if size is None
        else {"sub_group_size": size, "sub_groups_per_work_group": -(-96 // size)}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("extension", "name", "tells_unit"),
    [(NVIDIA, "PTX globaltimer", True), (AMD, "AMD real time", False)],
)
def test_gpus_have_clocks_of_their_own(extension: str, name: str, *, tells_unit: bool) -> None:
    """Lists the clock that a vendor's kernels can read."""
    gpu = replace(make_description(), kind=DeviceKind.GPU, extensions=(extension,))
    [clock] = list_clocks(gpu, ())
    assert (clock.name, clock.tells_unit) == (name, tells_unit)
