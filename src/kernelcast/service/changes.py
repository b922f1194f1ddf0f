"""How processes tell each other of changes: by counts that each looks at once a second.

Launches are put into a few thousand buckets: an observation makes kept answers of its own bucket be
looked at again, and leaves the others alone.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Versions:
    """Counts of changes that answers depend on."""

    everything: int = 0
    """Grows where any launch may have been observed, as by a collection."""
    observed: dict[str, int] = field(default_factory=dict)
    """Grow where a launch of that bucket was observed."""
    models: int = 0
    """Changes with the models in use."""

    def of(self, bucket: str) -> tuple[int, int]:
        return self.everything, self.observed.get(bucket, 0)


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
        versions: Versions,
        metrics: Metrics,
        forget_tokens: Callable[[], None],
    ) -> None:
        self._state = state
        self._backend = backend
        self._versions = versions
        self._metrics = metrics
        self._forget_tokens = forget_tokens
        self._tokens = -1
        self._is_away = False

    async def run(self) -> None:
        """Look once a second until cancelled."""
        while True:
            await self.look()
            self._metrics.watch_process()
            await asyncio.sleep(PERIOD_S)

    async def look(self) -> None:
        """Look once; a database that does not answer costs a line in the log."""
        try:
            changes = await asyncio.to_thread(self._state.changes.read)
            self._versions.models = await asyncio.to_thread(self._backend.generation)
        except Exception as error:  # noqa: BLE001 - it looks again in a second, whatever it is
            self._metrics.database_failures.labels("changes").inc()
            if not self._is_away:
                log("the database is away, changes are not seen", level=40, error=repr(error))
            self._is_away = True
            return
        self._is_away = False
        self._versions.everything = changes.get(EVERYTHING, 0)
        self._versions.observed = {
            name: one for name, one in changes.items() if name.startswith(_BUCKET)
        }
        tokens = changes.get(_TOKENS, 0)
        if tokens != self._tokens:
            self._tokens = tokens
            self._forget_tokens()
