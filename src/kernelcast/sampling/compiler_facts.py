"""Asks driver and compiler what a built kernel needs: registers, memory, sub-groups, spills."""

import math
import re
from typing import cast
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from kernelcast.records.compiler_facts import CompilerFacts
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.amd_code_object import CodeObjectFacts
from kernelcast.sampling.building import get_kernel, read_binary
from kernelcast.sampling.local_size import choose_local_size
from kernelcast.sampling.occupancy import CompiledResources
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.ptx import PtxFacts, is_ptx, parse_ptx
from kernelcast.sampling.saturation import read_code_object, read_compiler_statistics
from kernelcast.sampling.session import DeviceSession

# Two kernels of which we know what a truthful driver says: that they differ in private memory,
# and that a work-group of the required size fits. PoCL says 1,024 bytes of private memory for
# every kernel; rusticl says 32 work-items at most, also where it must run more, and does.
_YARDSTICK = """
kernel __attribute__((reqd_work_group_size(KC_ITEMS, 1, 1))) void kc_plain(global float *values)
{
    values[get_global_id(0)] *= 2.0f;
}

kernel void kc_array(global float *values, int place)
{
    float kept[256];
    for (int i = 0; i < 256; ++i)
        kept[i] = values[(i * place) % 1000];
    values[get_global_id(0)] = kept[kept[place & 255] > 0.0f ? 7 : place & 127];
}
"""
_YARDSTICK_ITEMS = 64
# clGetKernelSubGroupInfo came with 2.1; older loaders have no entry for it and may crash.
_SUB_GROUP_QUERY_SINCE = (2, 1)
# Only NVIDIA's driver gives PTX. Others are not asked: PoCL compiles the kernel once more for
# each work-group size to make a binary (63 ms for two lines).
_PTX_EXTENSION = "cl_nv_compiler_options"
# NVIDIA's driver has no sub-groups, AMD's none in devices that say OpenCL 2.0.
_WARP_SIZES = {
    "cl_nv_device_attribute_query": "warp_size_nv",
    "cl_amd_device_attribute_query": "wavefront_width_amd",
}

_FACTS_KEPT = 256
# What an index space adds is its local size: other sizes of a kernel are told without a question.
_known: WeakKeyDictionary[DeviceSession, LRUCache[tuple[str, tuple[int, ...]], CompilerFacts]] = (
    WeakKeyDictionary()
)


def read_compiler_facts(session: DeviceSession, kernel: Kernel, ndrange: NDRange) -> CompilerFacts:
    """Read what is known of a kernel, compiled as it is, on one device.

    Parameters
    ----------
    session : DeviceSession
        The device; its lock is taken, since compiling would disturb a measurement.
    ndrange : NDRange
        For the local size; where it has none, the device chooses.

    Raises
    ------
    DeviceLimitError
        If the driver chooses no usable local size.
    """
    with session.lock:
        built = session.whole_kernel(kernel)
        local_size = choose_local_size(session, built.kernel, ndrange).known_local_size
        known = _known.setdefault(session, LRUCache(_FACTS_KEPT))
        key = kernel.digest, local_size
        if key not in known:
            known[key] = _read_facts(session, kernel, built.program, local_size)
        return known[key]


def _read_facts(
    session: DeviceSession, kernel: Kernel, program: cl.Program, local_size: tuple[int, ...]
) -> CompilerFacts:
    # of its own: the session's may hold local arguments, which would count as declared
    compiled = get_kernel(program, kernel)
    found = {
        **describe_statistics(
            read_compiler_statistics(session, kernel), _read_ptx(session, program, kernel.name)
        ),
        **describe_code_object(read_code_object(session, kernel)),
        **_ask_driver(session, compiled),
        **_ask_sub_groups(session, compiled, local_size),
    }
    return CompilerFacts(**found)


def describe_statistics(
    statistics: CompiledResources | None, ptx: PtxFacts | None
) -> dict[str, Trait[int]]:
    """Name what NVIDIA's build log and the PTX tell.

    Examples
    --------
    >>> ptx = PtxFacts(virtual_register_count=9, instruction_count=12, depot_bytes=0)
    >>> describe_statistics(None, ptx)["ptx_instruction_count"].value
    12
    """
    facts: dict[str, Trait[int]] = {}
    if ptx is not None:
        facts |= {
            "private_bytes_per_work_item": _computed(ptx.depot_bytes),
            "ptx_virtual_register_count": _computed(ptx.virtual_register_count),
            "ptx_instruction_count": _computed(ptx.instruction_count),
        }
    if statistics is not None:
        facts |= {
            "registers_per_work_item": _reported(statistics.registers_per_work_item),
            "stack_frame_bytes_per_work_item": _reported(statistics.stack_frame_bytes),
            "spill_store_bytes_per_work_item": _reported(statistics.spill_store_bytes),
            "spill_load_bytes_per_work_item": _reported(statistics.spill_load_bytes),
        }
    return facts


def describe_code_object(code: CodeObjectFacts | None) -> dict[str, Trait[int]]:
    """Name what AMD's code object tells.

    Examples
    --------
    >>> code = CodeObjectFacts(
    ...     vector_registers=24, scalar_registers=16, wavefront_size=64, local_bytes=0,
    ...     private_bytes=0,
    ... )
    >>> describe_code_object(code)["registers_per_work_item"].value
    24
    """
    if code is None:
        return {}
    return {
        "registers_per_work_item": _reported(code.vector_registers),
        "private_bytes_per_work_item": _reported(code.private_bytes),
    }


def parse_opencl_version(text: str) -> tuple[int, int]:
    """Read the version out of what a device or platform says of itself.

    Examples
    --------
    >>> parse_opencl_version("OpenCL 3.0 PoCL HSTR: pthread-x86_64")
    (3, 0)
    >>> parse_opencl_version("unknown")
    (0, 0)
    """
    found = re.match(r"OpenCL (\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def _ask_driver(session: DeviceSession, compiled: cl.Kernel) -> dict[str, Trait[int]]:
    info = cl.kernel_work_group_info
    device = session.device
    plain, array = (_build_yardstick(session, name) for name in ("kc_plain", "kc_array"))
    facts: dict[str, Trait[int]] = {}
    private = _ask(compiled, info.PRIVATE_MEM_SIZE, device)
    if private is not None and (
        _ask(plain, info.PRIVATE_MEM_SIZE, device) != _ask(array, info.PRIVATE_MEM_SIZE, device)
    ):
        facts["private_bytes_per_work_item"] = _reported(private)
    largest = _ask(compiled, info.WORK_GROUP_SIZE, device)
    if largest and (_ask(plain, info.WORK_GROUP_SIZE, device) or 0) >= _count_items(session):
        facts["max_work_group_size"] = _reported(largest)
    multiple = _ask(compiled, info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
    if multiple:
        facts["preferred_work_group_multiple"] = _reported(multiple)
    local = _ask(compiled, info.LOCAL_MEM_SIZE, device)
    if local is not None:
        true = session.probe.read_local_memory(compiled, device)
        facts["local_bytes_per_work_group"] = _reported(local) if true == local else _computed(true)
    return facts


def _ask(compiled: cl.Kernel, what: int, device: cl.Device) -> int | None:
    """Give a driver's answer about a kernel, or None where it refuses to answer."""
    try:
        # pyopencl types every answer as object
        return cast("int", compiled.get_work_group_info(what, device))
    except cl.Error:
        return None


def _ask_sub_groups(
    session: DeviceSession, compiled: cl.Kernel, local_size: tuple[int, ...]
) -> dict[str, Trait[int]]:
    """Ask for the sub-groups of a work-group of that size; nothing where there are none."""
    info = cl.kernel_sub_group_info
    device = session.device
    try:
        if _has_sub_groups(device):
            size, count = (
                cast("int", compiled.get_sub_group_info(device, what, local_size))
                for what in (info.MAX_SUB_GROUP_SIZE_FOR_NDRANGE, info.SUB_GROUP_COUNT_FOR_NDRANGE)
            )
            if size and count:
                return {
                    "sub_group_size": _reported(size),
                    "sub_groups_per_work_group": _reported(count),
                }
    except cl.Error:  # the driver promises the query and refuses it
        pass
    return _read_warp_size(session, math.prod(local_size))


def _read_warp_size(session: DeviceSession, work_items: int) -> dict[str, Trait[int]]:
    """Ask a vendor's own query how many work-items run in step; nothing where there is none."""
    for extension, name in _WARP_SIZES.items():
        if extension in session.description.extensions:
            try:
                size = int(getattr(session.device, name))
            except (AttributeError, cl.Error):  # listed, and refused
                continue
            if size > 0:
                return {
                    "sub_group_size": _reported(size),
                    "sub_groups_per_work_group": _computed(-(-work_items // size)),
                }
    return {}


def _has_sub_groups(device: cl.Device) -> bool:
    """Tell whether the driver may be asked about sub-groups; optional again since OpenCL 3.0."""
    versions = (device.platform.version, device.version)
    if any(parse_opencl_version(text) < _SUB_GROUP_QUERY_SINCE for text in versions):
        return False
    return device.max_num_sub_groups > 0


def _read_ptx(session: DeviceSession, program: cl.Program, kernel_name: str) -> PtxFacts | None:
    if _PTX_EXTENSION not in session.description.extensions:
        return None
    binary = read_binary(program, session.device)
    if not is_ptx(binary):
        return None
    return parse_ptx(binary.decode("ascii", errors="replace"), kernel_name)


def _count_items(session: DeviceSession) -> int:
    return min(_YARDSTICK_ITEMS, session.description.max_work_item_sizes[0],
               session.description.max_work_group_size)  # fmt: skip


def _build_yardstick(session: DeviceSession, name: str) -> cl.Kernel:
    options = (f"-DKC_ITEMS={_count_items(session)}",)
    return session.whole_kernel(Kernel(name=name, source=_YARDSTICK, build_options=options)).kernel


def _reported(value: int) -> Trait[int]:
    return Trait(value=value, source=TraitSource.REPORTED)


def _computed(value: int) -> Trait[int]:
    return Trait(value=value, source=TraitSource.COMPUTED)
