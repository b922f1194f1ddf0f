"""What every process does once a second: see what other processes have changed."""

import asyncio
from collections.abc import Callable
from typing import Final

from kernelcast.service.backend import Backend
from kernelcast.service.changes import EVERYTHING, TOKENS, is_bucket
from kernelcast.service.estimating import Versions
from kernelcast.service.logs import log
from kernelcast.service_state import ServiceState

PERIOD_S: Final = 1.0


class ChangeWatcher:
    """Looks for changes of observations, models and tokens."""

    def __init__(
        self,
        state: ServiceState,
        backend: Backend,
        versions: Versions,
        forget_tokens: Callable[[], None],
    ) -> None:
        self._state = state
        self._backend = backend
        self._versions = versions
        self._forget_tokens = forget_tokens
        self._tokens = -1
        self._is_away = False

    @property
    def models(self) -> int:
        """A number that changes with the models in use."""
        return self._versions.models

    async def run(self) -> None:
        """Look once a second until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(PERIOD_S)

    async def look(self) -> None:
        """Look once; a database that does not answer costs a line in the log."""
        try:
            changes = await asyncio.to_thread(self._state.changes.read)
            self._versions.models = await asyncio.to_thread(self._backend.generation)
        except Exception as error:  # noqa: BLE001 - it looks again in a second, whatever it is
            if not self._is_away:
                log("the database is away, changes are not seen", level=40, error=repr(error))
            self._is_away = True
            return
        self._is_away = False
        self._versions.everything = changes.get(EVERYTHING, 0)
        self._versions.observed = {name: one for name, one in changes.items() if is_bucket(name)}
        tokens = changes.get(TOKENS, 0)
        if tokens != self._tokens:
            self._tokens = tokens
            self._forget_tokens()
