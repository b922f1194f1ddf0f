"""Removes and corrects observations, and has every process look at its answers again."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from kernelcast.collection.data_editing import (
    Correction,
    Found,
    correct_observation,
    describe_selection,
    find_observations,
)
from kernelcast.launches.data_store import Selection, open_data_store
from kernelcast.records.errors import InputError
from kernelcast.service.changes import EVERYTHING
from kernelcast.service_state import ServiceState


class Editing:
    """Edits the store."""

    def __init__(self, database: str, state: ServiceState, forget: Callable[[], None]) -> None:
        self._store = open_data_store(database)
        self._state = state
        self._forget = forget

    @staticmethod
    def check(wanted: Selection) -> None:
        """Refuse a selection of everything."""
        if not describe_selection(wanted):
            msg = "every observation would be removed; say which are meant, as by `kernel`"
            raise InputError(msg)

    async def find(self, wanted: Selection, *, most: int) -> Found:
        """Give what a selection means."""
        return await asyncio.to_thread(partial(find_observations, self._store, wanted, most=most))

    async def remove(self, wanted: Selection) -> int:
        """Remove what a selection means; give how many there were."""
        try:
            return await asyncio.to_thread(self._store.remove_selected, wanted)
        finally:
            await self._tell()

    async def correct(self, key: str, correction: Correction) -> Mapping[str, object]:
        """Change an observation; give it as it is now."""
        try:
            return await asyncio.to_thread(correct_observation, self._store, key, correction)
        finally:
            await self._tell()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    async def _tell(self) -> None:
        self._forget()
        await asyncio.to_thread(self._state.changes.count, EVERYTHING)
