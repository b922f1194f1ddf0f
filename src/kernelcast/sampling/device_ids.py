"""Chooses devices by their ids; asks no driver."""

from collections.abc import Iterable

from kernelcast.records.errors import UnknownDeviceError


def match_device_id(wanted: str, ids: Iterable[str]) -> str:
    known = sorted(ids)
    if wanted in known:
        return wanted
    matches = [key for key in known if wanted and key.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    what = "unknown" if not matches else f"the beginning of {len(matches)} ids"
    msg = f"device {wanted!r} is {what}; the devices here are: {', '.join(known)}"
    raise UnknownDeviceError(msg)
