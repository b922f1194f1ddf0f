"""Writes down what administrators do."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kernelcast.records.service_state import AuditRecord
from kernelcast.service.authentication import Caller
from kernelcast.service.logs import log
from kernelcast.service_state import ServiceState


class Auditor:
    """Writes rows of the audit log."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state

    async def note(  # noqa: PLR0913 - each is a column
        self,
        caller: Caller,
        action: str,
        subject: str,
        *,
        remote: str,
        request_id: str,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a row before what it tells of is done."""
        record = AuditRecord(
            at=datetime.now(UTC),
            actor=caller.name,
            action=action,
            subject=subject,
            detail=detail or {},
            remote=remote,
            request_id=request_id,
        )
        await asyncio.to_thread(self._state.audit.add, record)
        log("admin action", action=action, subject=subject, actor=caller.name,
            request_id=request_id)  # fmt: skip
