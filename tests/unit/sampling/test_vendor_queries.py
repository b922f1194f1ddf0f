"""NVIDIA's and AMD's own ways to tell of a kernel, on devices that exist as answers only."""

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling import compiler_facts, saturation
from kernelcast.sampling.amd_code_object import CodeObjectFacts, parse_code_object
from kernelcast.sampling.clocks import list_clocks
from kernelcast.sampling.occupancy import CompiledResources
from kernelcast.sampling.opencl import cl
from support.builders import make_description

KERNEL = Kernel(name="triad", source="kernel void triad() { barrier(CLK_LOCAL_MEM_FENCE); }")
NDRANGE = NDRange(global_size=(1 << 20,), local_size=(256,))
AMD, NVIDIA = "cl_amd_device_attribute_query", "cl_nv_device_attribute_query"


def write_code_object(*kernels: dict[str, object], before: bytes = b"\x7fELF...") -> bytes:
    """Write a binary with a note as LLVM does."""
    held = msgpack.packb({"amdhsa.version": [1, 2], "amdhsa.kernels": list(kernels)})
    return before + struct.pack("<III", 7, len(held), 32) + b"AMDGPU\0\0" + held + b"\0" * 9


def describe(name: str, *, vgprs: int, wavefront: int = 64) -> dict[str, object]:
    """Describe a kernel as the note does."""
    return {
        ".name": name, ".symbol": f"{name}.kd", ".vgpr_count": vgprs, ".sgpr_count": 24,
        ".vgpr_spill_count": 0, ".wavefront_size": wavefront, ".args": [{".size": 8}],
        ".group_segment_fixed_size": 4096, ".private_segment_fixed_size": 16,
    }  # fmt: skip


def make_session(extension: str, *, device_name: str, vendor: str, **answers: object) -> Any:  # noqa: ANN401 - as much of a session as is asked for
    """Make a session of a device that gives some answers."""
    device = SimpleNamespace(
        platform=SimpleNamespace(vendor=vendor, version="OpenCL 2.1"), version="OpenCL 2.0",
        extensions=extension, **answers,
    )  # fmt: skip
    return SimpleNamespace(
        device=device,
        description=SimpleNamespace(name=device_name, extensions=(extension,)),
        whole_kernel=lambda _: SimpleNamespace(program=None),
    )


class Compiled:
    """Answers of the driver about a kernel."""

    def __init__(self, multiple: int, local_bytes: int = 0) -> None:
        info = cl.kernel_work_group_info
        self._answers = {
            info.LOCAL_MEM_SIZE: local_bytes, info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE: multiple,
        }  # fmt: skip

    def get_work_group_info(self, what: int, _: object) -> int:
        """Answer."""
        return self._answers[what]


def test_code_objects_tell_of_each_kernel() -> None:
    """Finds a kernel among others, after bytes that only look like a note."""
    lookalike = struct.pack("<III", 7, 3, 32) + b"AMDGPU\0\0" + b"abc"
    binary = write_code_object(
        describe("other", vgprs=9), describe("triad", vgprs=40), before=lookalike
    )
    assert parse_code_object(binary, "triad") == CodeObjectFacts(
        vector_registers=40, scalar_registers=24, wavefront_size=64, local_bytes=4096,
        private_bytes=16,
    )  # fmt: skip
    assert parse_code_object(binary, "copy") is None


@pytest.mark.parametrize("binary", [b"", b".version 7.8", write_code_object()[:40]])
def test_other_binaries_tell_nothing(binary: bytes) -> None:
    """Gives nothing for PTX, an empty binary or half a code object."""
    assert parse_code_object(binary, "triad") is None


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
    monkeypatch.setattr(saturation, "read_binary", lambda *_: binary)
    session = make_session(AMD, device_name=gfx, vendor="Advanced Micro Devices, Inc.")
    compiled: Any = Compiled(multiple=wavefront)
    found = saturation.compute_for_kernel(session, compiled, KERNEL, NDRANGE)
    assert found is not None
    assert found.p_sat == p_sat
    assert found.assumed == ()


def test_without_a_code_object_registers_are_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Says what is not known where the driver gives no binary."""
    monkeypatch.setattr(saturation, "read_binary", lambda *_: b"")
    session = make_session(AMD, device_name="gfx942", vendor="Advanced Micro Devices, Inc.")
    compiled: Any = Compiled(multiple=64)
    found = saturation.compute_for_kernel(session, compiled, KERNEL, NDRANGE)
    assert found is not None
    assert "registers_per_work_item" in found.assumed


@pytest.mark.parametrize(("registers", "p_sat"), [(32, 8), (64, 4), (128, 2)])
def test_registers_of_build_logs_limit_occupancy(
    monkeypatch: pytest.MonkeyPatch, registers: int, p_sat: int
) -> None:
    """Computes P_sat on an H100 with the registers of the build log."""
    statistics = CompiledResources(
        registers_per_work_item=registers, local_memory_bytes=0, stack_frame_bytes=0,
        spill_store_bytes=0, spill_load_bytes=0, uses_barriers=True,
    )  # fmt: skip
    monkeypatch.setattr(saturation, "read_compiler_statistics", lambda *_: statistics)
    session = make_session(
        NVIDIA, device_name="NVIDIA H100", vendor="NVIDIA Corporation",
        compute_capability_major_nv=9, compute_capability_minor_nv=0,
    )  # fmt: skip
    compiled: Any = Compiled(multiple=32)
    found = saturation.compute_for_kernel(session, compiled, KERNEL, NDRANGE)
    assert found is not None
    assert found.p_sat == p_sat


def test_what_fits_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses a work-group with more local memory than an SM gives to one."""
    monkeypatch.setattr(saturation, "read_compiler_statistics", lambda *_: None)
    session = make_session(
        NVIDIA, device_name="NVIDIA H100", vendor="NVIDIA Corporation",
        compute_capability_major_nv=9, compute_capability_minor_nv=0,
    )  # fmt: skip
    compiled: Any = Compiled(multiple=32, local_bytes=228 << 10)
    with pytest.raises(DeviceLimitError, match="local memory"):
        saturation.compute_for_kernel(session, compiled, KERNEL, NDRANGE)


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
