"""Asks driver and compiler what a built kernel needs: registers, memory, sub-groups, spills."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import cast
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from kernelcast.records.compiler_facts import CompilerFacts
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.building import get_kernel, read_binary
from kernelcast.sampling.compiled_code import (
    NVIDIA_COMPILER,
    parse_ptx,
    read_compiler_statistics,
)
from kernelcast.sampling.launch_limits import choose_local_size
from kernelcast.sampling.opencl import cl
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
# NVIDIA's driver has no sub-groups, AMD's none in devices that say OpenCL 2.0.
_WARP_SIZES = {
    "cl_nv_device_attribute_query": "warp_size_nv",
    "cl_amd_device_attribute_query": "wavefront_width_amd",
}
# What an index space adds is its local size: other sizes of a kernel are told without a question.
_known: WeakKeyDictionary[DeviceSession, LRUCache[tuple[str, tuple[int, ...]], CompilerFacts]] = (
    WeakKeyDictionary()
)


def read_compiler_facts(session: DeviceSession, kernel: Kernel, ndrange: NDRange) -> CompilerFacts:
    """Read what is known of a kernel, compiled as it is, at a local size; takes the lock."""
    with session.lock:
        built = session.whole_kernel(kernel)
        local_size = choose_local_size(session, built.kernel, ndrange).known_local_size
        known = _known.setdefault(session, LRUCache(256))
        key = kernel.digest, local_size
        if key not in known:
            # of its own: the session's may hold local arguments, which would count as declared
            compiled = get_kernel(built.program, kernel)
            ptx = {}
            # Others are not asked: PoCL compiles the kernel once more for each work-group size to
            # make a binary (63 ms for two lines).
            if NVIDIA_COMPILER in session.description.extensions:
                ptx = parse_ptx(read_binary(built.program, session.device), kernel.name)
            known[key] = CompilerFacts(
                **_take_facts(ptx, TraitSource.COMPUTED)
                | _take_facts(read_compiler_statistics(session, kernel), TraitSource.REPORTED)
                | _ask_driver(session, compiled)
                | _ask_sub_groups(session, compiled, local_size)
            )
        return known[key]


_NAMES = frozenset(field.name for field in fields(CompilerFacts))


def _take_facts(found: Mapping[str, int], source: TraitSource) -> dict[str, Trait[int]]:
    return {
        name: Trait(value=value, source=source) for name, value in found.items() if name in _NAMES
    }


def _ask_driver(session: DeviceSession, compiled: cl.Kernel) -> dict[str, Trait[int]]:
    """Ask what the driver tells of every kernel, as far as it tells the truth of yardsticks."""
    info = cl.kernel_work_group_info
    items = min(64, session.description.max_work_item_sizes[0],
                session.description.max_work_group_size)  # fmt: skip
    plain, array = (
        session.whole_kernel(
            Kernel(name=name, source=_YARDSTICK, build_options=(f"-DKC_ITEMS={items}",))
        ).kernel
        for name in ("kc_plain", "kc_array")
    )

    def ask(kernel: cl.Kernel, what: int) -> int | None:
        try:
            # pyopencl types every answer as object
            return cast("int", kernel.get_work_group_info(what, session.device))
        except cl.Error:
            return None

    found: dict[str, int] = {}
    private = ask(compiled, info.PRIVATE_MEM_SIZE)
    if private is not None and ask(plain, info.PRIVATE_MEM_SIZE) != ask(
        array, info.PRIVATE_MEM_SIZE
    ):
        found["private_bytes_per_work_item"] = private
    largest = ask(compiled, info.WORK_GROUP_SIZE)
    if largest and (ask(plain, info.WORK_GROUP_SIZE) or 0) >= items:
        found["max_work_group_size"] = largest
    if multiple := ask(compiled, info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE):
        found["preferred_work_group_multiple"] = multiple
    facts = _take_facts(found, TraitSource.REPORTED)
    local = ask(compiled, info.LOCAL_MEM_SIZE)
    if local is not None:
        true = session.probe.read_local_memory(compiled, session.device)
        source = TraitSource.REPORTED if true == local else TraitSource.COMPUTED
        facts["local_bytes_per_work_group"] = Trait(value=true, source=source)
    return facts


def _ask_sub_groups(
    session: DeviceSession, compiled: cl.Kernel, local_size: tuple[int, ...]
) -> dict[str, Trait[int]]:
    """Ask for the sub-groups of a work-group of that size; nothing where there are none."""
    info = cl.kernel_sub_group_info
    device = session.device
    size = count = 0
    try:
        # clGetKernelSubGroupInfo came with 2.1, older loaders have no entry for it and may crash;
        # optional again since OpenCL 3.0.
        versions = (device.platform.version, device.version)
        is_new = all(re.match(r"OpenCL (2\.[1-9]|[3-9]|\d\d)", text) for text in versions)
        if is_new and device.max_num_sub_groups > 0:
            size, count = (
                cast("int", compiled.get_sub_group_info(device, what, local_size))
                for what in (info.MAX_SUB_GROUP_SIZE_FOR_NDRANGE, info.SUB_GROUP_COUNT_FOR_NDRANGE)
            )
    except cl.Error:  # the driver promises the query and refuses it
        pass
    source = TraitSource.REPORTED
    for extension, name in _WARP_SIZES.items():
        if not (size and count) and extension in session.description.extensions:
            try:
                size = int(getattr(device, name))
            except (AttributeError, cl.Error):  # listed, and refused
                continue
            count = -(-math.prod(local_size) // size) if size > 0 else 0
            source = TraitSource.COMPUTED
    if not (size and count):
        return {}
    return {
        "sub_group_size": Trait(value=size, source=TraitSource.REPORTED),
        "sub_groups_per_work_group": Trait(value=count, source=source),
    }
