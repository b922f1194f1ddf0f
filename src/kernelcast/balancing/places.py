"""Where each device of a balanced launch runs."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelcast.balancing.settings import DevicePlace
from kernelcast.launches.devices import list_descriptions
from kernelcast.records.device import DeviceDescription, DeviceKind, match_device_id
from kernelcast.records.errors import InputError
from kernelcast.sampling.cores import read_cores


def choose_places(devices: Sequence[str | DevicePlace]) -> list[DevicePlace]:
    known = {one.id: one for one in list_descriptions()}
    wanted = [
        one if isinstance(one, DevicePlace) else DevicePlace(device_id=one)
        for one in devices or list(known)
    ]
    found = [replace(one, device_id=match_device_id(one.device_id, known)) for one in wanted]
    return [
        replace(
            one,
            concurrency=max(
                1, len(one.cores) or one.compute_units or known[one.device_id].compute_units
            ),
        )
        for one in share_cores(found, known)
    ]


def share_cores(
    places: Sequence[DevicePlace],
    descriptions: Mapping[str, DeviceDescription],
    available: Sequence[int] | None = None,
) -> list[DevicePlace]:
    """Divide the cores that nobody has been given among CPU devices without any."""
    if available is None:  # none where processes cannot be bound to cores
        available = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
    taken = {core for one in places for core in one.cores}
    free = [core for core in available if core not in taken]
    is_cpu = [descriptions[one.device_id].kind is DeviceKind.CPU for one in places]
    bare = [n for n, one in enumerate(places) if is_cpu[n] and not one.cores]
    if sum(is_cpu) < 2 or not bare or len(free) < len(bare):
        return list(places)
    given = list(places)
    for place, number in enumerate(bare):
        first, stop = (len(free) * end // len(bare) for end in (place, place + 1))
        given[number] = replace(given[number], cores=tuple(free[first:stop]))
    return given


def place_by_text(device_ids: Sequence[str], cores: str | None) -> list[DevicePlace]:
    """Read devices and their cores as a command line gives them."""
    places = [DevicePlace(device_id=one) for one in device_ids]
    for part in filter(None, (cores or "").split(",")):
        name, equals, text = part.partition("=")
        number = next(
            (n for n, one in enumerate(places) if one.device_id == name and not one.cores), None
        )
        if not equals or number is None:
            names = ", ".join(device_ids) or "none"
            raise InputError(f"cores {part!r}: give DEVICE=CORES with a device as named: {names}")
        places[number] = replace(places[number], cores=read_cores(text))
    return places
