"""The devices of this host, asked for now and then."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from kernelcast.launches.devices import pick_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import NoDeviceError
from kernelcast.service.backend import Backend

_STANDS_S: Final = 600.0


class DeviceDirectory:
    """Devices by their ids."""

    def __init__(self, backend: Backend, on_change: Callable[[], None] = lambda: None) -> None:
        self._backend = backend
        self._on_change = on_change
        self._devices: dict[str, DeviceDescription] = {}
        self._ends_s = 0.0
        self._lock = asyncio.Lock()

    async def list(self) -> Sequence[DeviceDescription]:
        """Describe all devices."""
        return list((await self._read()).values())

    async def ids(self) -> set[str]:
        """Give the ids of all devices; none where there is no device."""
        try:
            return set(await self._read())
        except NoDeviceError:
            return set()

    async def choose(self, wanted: Sequence[str]) -> Sequence[DeviceDescription]:
        """Give the devices of those ids or beginnings of ids, each once, or all of them."""
        return pick_devices(wanted, await self.list())

    async def _read(self) -> dict[str, DeviceDescription]:
        if time.monotonic() < self._ends_s:
            return self._devices
        async with self._lock:
            if time.monotonic() >= self._ends_s:
                found = await asyncio.to_thread(self._backend.list_devices)
                self._devices = {one.id: one for one in found}
                self._ends_s = time.monotonic() + _STANDS_S
                self._on_change()
        return self._devices
