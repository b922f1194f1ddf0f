"""How processes tell each other of changes: by counts that each looks at once a second.

Launches are put into a few thousand buckets: an observation makes kept answers of its own bucket be
looked at again, and leaves the others alone.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kernelcast.records.launch_identity import LaunchIdentity, digest_text
from kernelcast.service.backend import Backend
from kernelcast.service.telemetry import Metrics, log
from kernelcast.service_state import OBSERVATIONS_CHANGED, ServiceState

EVERYTHING: Final = OBSERVATIONS_CHANGED
"""Any launch may have been observed, or may have lost observations."""
PERIOD_S: Final = 1.0
_TOKENS: Final = "tokens"
_BUCKET: Final = "observed:"


def bucket_of(launch: LaunchIdentity) -> str:
    """Name the count that observations of a launch make grow."""
    device = launch.device
    parts = (launch.kernel.digest, device.id, device.driver, repr(launch.ndrange))
    return _BUCKET + digest_text(*parts, launch.arguments_digest)[:3]


class ChangeWatcher:
    """Looks for changes of observations, models and tokens that other processes have made."""

    def __init__(
        self,
        state: ServiceState,
        backend: Backend,
        metrics: Metrics,
        forget_tokens: Callable[[], None],
    ) -> None:
        self._state = state
        self._backend = backend
        self._metrics = metrics
        self._forget_tokens = forget_tokens
        self._models = 0
        self._counts: dict[str, int] = {}
        self._is_away = False

    def stamp(self, bucket: str) -> tuple[int, int, int]:
        """Stamp an answer: it changes with the models in use, where any launch may have been
        observed, and where one of a bucket was."""
        return self._models, self._counts.get(EVERYTHING, 0), self._counts.get(bucket, 0)

    async def run(self) -> None:
        """Look once a second until cancelled."""
        while True:
            await self.look()
            self._metrics.watch_process()
            await asyncio.sleep(PERIOD_S)

    async def look(self) -> None:
        """Look once; a database that does not answer costs a line in the log."""
        try:
            counts = await asyncio.to_thread(self._state.changes.read)
            self._models = await asyncio.to_thread(self._backend.generation)
        except Exception as error:  # noqa: BLE001 - it looks again in a second, whatever it is
            self._metrics.database_failures.labels("changes").inc()
            if not self._is_away:
                log("the database is away, changes are not seen", level=40, error=repr(error))
            self._is_away = True
            return
        self._is_away = False
        if counts.get(_TOKENS) != self._counts.get(_TOKENS):
            self._forget_tokens()
        self._counts = counts
