"""Which running service answers: all processes of one `kernelcast serve` are one instance."""

import json
import os
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, Self

INSTANCE_HEADER: Final = "x-kernelcast-instance"
"""Names the instance in every answer, so that clients notice another one at the same address."""
_VARIABLE: Final = "KERNELCAST_SERVICE_INSTANCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A running service; nothing here is secret."""

    id: str
    """Drawn when it starts."""
    version: str
    """Of kernelcast."""
    started_at: str
    """In ISO 8601, UTC."""
    pid: int
    """Of the process that was started."""

    @classmethod
    def make(cls) -> Self:
        """Begin a new one in this process."""
        return cls(
            id=uuid.uuid4().hex[:16],
            version=version("kernelcast"),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            pid=os.getpid(),
        )

    def announce(self) -> None:
        """Tell child processes which instance they are part of."""
        os.environ[_VARIABLE] = json.dumps(asdict(self))

    @classmethod
    def find(cls) -> Self:
        """Give the instance that this process is part of; a new one where nobody has told it."""
        told = os.environ.get(_VARIABLE)
        return cls(**json.loads(told)) if told else cls.make()
