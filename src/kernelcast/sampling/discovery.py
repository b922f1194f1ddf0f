"""Finds the OpenCL and CUDA devices of this machine and gives each a stable id."""

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any, cast

from kernelcast.records.device import DeviceDescription, DeviceKind, match_device_id
from kernelcast.records.errors import NoDeviceError
from kernelcast.records.kernel import Dialect
from kernelcast.sampling import cuda
from kernelcast.sampling.host import read_processor
from kernelcast.sampling.opencl import cl

# Extensions that change what kernelcast can do on a device.
NOTABLE_EXTENSIONS = frozenset({
    "cl_khr_fp16", "cl_khr_fp64", "cl_khr_int64_base_atomics", "cl_khr_kernel_clock",
    "cl_khr_subgroups", "cl_khr_suggested_local_work_size", "cl_khr_device_uuid",
    "cl_khr_pci_bus_info", "cl_intel_concurrent_dispatch", "cl_intel_subgroups",
    "cl_nv_device_attribute_query", "cl_nv_compiler_options", "cl_amd_device_attribute_query",
    "cl_arm_core_id",
})  # fmt: skip
_KINDS = (
    (cl.device_type.CPU, DeviceKind.CPU),
    (cl.device_type.GPU, DeviceKind.GPU),
    (cl.device_type.ACCELERATOR, DeviceKind.ACCELERATOR),
)
_BY_NUMBER = {cl.device_partition_property.EQUALLY, cl.device_partition_property.BY_COUNTS}
INSTALL_HINT = (
    "no OpenCL device was found. Install one: the embedded CPU device with "
    "`pip install 'kernelcast[cpu]'` (x86-64 Linux and Windows), or a system runtime, "
    "for example `apt-get install pocl-opencl-icd` on Debian and Ubuntu, or your GPU vendor's "
    "driver. Where NVIDIA's driver has no OpenCL, as in most containers, "
    "`pip install 'kernelcast[cuda]'` does. Devices of Mesa's rusticl appear once RUSTICL_ENABLE "
    "names their driver, for example RUSTICL_ENABLE=llvmpipe"
)


def find_devices() -> list[tuple[DeviceDescription, cl.Device]]:
    handles: list[cl.Device] = []
    through_cuda = cast("list[cl.Device]", cuda.list_devices())
    with suppress(cl.Error):  # the loader found no platform at all
        for platform in cl.get_platforms():
            with suppress(cl.Error):  # a platform without devices answers with an error
                handles += platform.get_devices()
    shown = {_position(one)[-2:] for one in handles if one.type & cl.device_type.GPU}
    # GPUs that OpenCL shows too are listed once. Older drivers do not tell the bus's domain.
    handles += [one for one in through_cuda if _position(one)[-2:] not in shown]
    found: dict[str, tuple[DeviceDescription, cl.Device]] = {}
    # In an order of our own, not the loader's.
    for device in sorted(handles, key=lambda one: (_identity(one), _position(one))):
        description = describe_device(device, taken=found)
        found[description.id] = (description, device)
    if not found:
        raise NoDeviceError(INSTALL_HINT)
    return [found[key] for key in sorted(found)]


@cache
def find_devices_once() -> tuple[tuple[DeviceDescription, cl.Device], ...]:
    return tuple(find_devices())


def choose_device(
    wanted: str, devices: Iterable[tuple[DeviceDescription, cl.Device]]
) -> tuple[DeviceDescription, cl.Device]:
    by_id = {description.id: (description, handle) for description, handle in devices}
    return by_id[match_device_id(wanted, by_id)]


def describe_device(device: cl.Device, *, taken: Iterable[str] = ()) -> DeviceDescription:
    """Ask the driver about one device; an equal one's id gets ``-2``, ``-3`` and so on."""
    extensions = frozenset(device.extensions.split())
    root = list_ancestors(device)[-1]
    # How many compute units of a device a sub-device has; nothing of a whole device.
    part = "" if root is device else f"{device.max_compute_units} of {root.max_compute_units}"
    # Make ``platform-device-digest``, of a sub-device with its part before the digest.
    taken = frozenset(taken)
    digest = hashlib.sha256(_identity(device).encode()).hexdigest()[:4]
    words = [_slug(device.platform.name, words=1), _slug(_name_fully(device), words=3),
             part.replace(" ", ""), digest]  # fmt: skip
    base = "-".join(word for word in words if word)
    candidates = [base, *(f"{base}-{number}" for number in range(2, len(taken) + 3))]
    return DeviceDescription(
        id=next(candidate for candidate in candidates if candidate not in taken),
        name=device.name.strip() + (f", {part} compute units" if part else ""),
        platform=device.platform.name.strip(),
        vendor=device.vendor.strip(),
        driver=device.driver_version.strip(),
        opencl_version=device.version.strip(),
        kind=next((kind for flag, kind in _KINDS if device.type & flag), DeviceKind.CUSTOM),
        compute_units=device.max_compute_units,
        local_memory_bytes=device.local_mem_size,
        global_memory_bytes=device.global_mem_size,
        max_allocation_bytes=device.max_mem_alloc_size,
        max_work_group_size=device.max_work_group_size,
        max_work_item_sizes=tuple(device.max_work_item_sizes),
        extensions=tuple(sorted(extensions & NOTABLE_EXTENSIONS)),
        has_non_uniform_work_groups=bool(
            _query(device, "non_uniform_work_group_support", default=False)
        ),
        has_fp64="cl_khr_fp64" in extensions or bool(device.double_fp_config),
        dialect=read_dialect(device),
    )


def read_dialect(device: cl.Device) -> Dialect:
    return _query(device, "dialect", default=None) or Dialect.from_device(
        device.version, device.extensions,
        features=[feature.name for feature in _query(device, "opencl_c_features", default=())],
        has_fp64=bool(device.double_fp_config),
        has_images=bool(_query(device, "image_support", default=True)),
        is_little_endian=bool(_query(device, "endian_little", default=True)),
    )  # fmt: skip


def _identity(device: cl.Device) -> str:
    """Join what stays when drivers change; several processors have the name of one device."""
    parts = [device.platform.name, device.platform.vendor, _name_fully(device), device.vendor]
    if device.type & cl.device_type.CPU:
        parts.append(read_processor().generation)
    for one in list_ancestors(device)[:-1]:
        how = [int(number) for number in cast("list[int]", one.partition_type)]
        # Equal parts by number are one device, whichever it is; others share caches or have names.
        parts.append(f"{one.max_compute_units} {'' if set(how[:1]) <= _BY_NUMBER else how}")
    return "\0".join(parts)


def list_ancestors(device: cl.Device) -> list[cl.Device]:
    found = [device]
    while (parent := _query(found[-1], "parent_device", default=None)) is not None:
        found.append(cast("cl.Device", parent))
    return found


def _name_fully(device: cl.Device) -> str:
    """Name a device, and the processor it runs on where it is the host's: llvmpipe does not."""
    # rusticl writes its LLVM's version in brackets.
    name, processor = (re.sub(r"\(.*?\)", "", one) for one in (device.name, read_processor().name))
    if not device.type & cl.device_type.CPU:
        # AMD's driver names the architecture only, which boards of several sizes share.
        return str(_query(device, "board_name_amd", default="")).strip() or name
    vendor = next(iter(processor.lower().split()), "")
    return name if vendor in name.lower() else f"{name.strip()} {processor}"


def _position(device: cl.Device) -> tuple[int, ...]:
    """Order equal devices by their place on the bus, which survives a reboot."""
    place = _query(device, "topology_amd", default=None)
    names = ("bus", "device", "function")
    if place is None:
        place, names = device, ("pci_domain_id_nv", "pci_bus_id_nv", "pci_slot_id_nv")
    numbers = (_query(place, name, default=-1) for name in names)
    return tuple(int(str(one)) % 2**32 for one in numbers)  # AMD's are signed bytes


def _query(device: object, name: str, *, default: object) -> Any:  # noqa: ANN401 - what a driver has
    try:
        return getattr(device, name)
    except (AttributeError, cl.Error):
        return default


_NOISE = frozenset({
    "r", "tm", "c", "the", "opencl", "platform", "pthread", "computing", "gpu", "cpu", "device",
    "llvm", "bits", "portable", "nvidia", "corporation",
})  # fmt: skip
_PLATFORM_NAMES = {"portable computing language": "pocl", "nvidia cuda": "nvidia"}


def _slug(text: str, *, words: int) -> str:
    known = _PLATFORM_NAMES.get(text.strip().lower())
    if known:
        return known
    parts = [part for part in re.split(r"[^a-z0-9]+", text.lower()) if part]
    kept = [part for part in parts if part not in _NOISE] or parts
    return "-".join(kept[:words])
