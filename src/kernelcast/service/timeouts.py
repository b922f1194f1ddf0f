"""Launches that did not end in time, so that they do not block their device again.

All processes of a host share a small file for each device. Only who holds the device's lock writes
it; anybody reads.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final

from cattrs.preconf.json import make_converter

from kernelcast.launches.data_folder import data_folder
from kernelcast.records.private_files import write_private
from kernelcast.service.backend import Ask
from kernelcast.service.device_lock import lock_name
from kernelcast.service.errors import ApiError

_STANDS: Final = timedelta(minutes=10)
"""After the first time; each further time four times as long."""
_CONVERTER: Final = make_converter(detailed_validation=False)
_LONGEST: Final = timedelta(days=1)
_MOST: Final = 256
"""Of each device; the oldest are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """A sampling that was ended."""

    at: datetime
    limit_s: float
    """Its time limit, in seconds."""
    reason: str
    times: int
    """How often the launch did not end in time, one time after the other."""

    @property
    def until(self) -> datetime:
        return self.at + min(_LONGEST, _STANDS * (1 << 2 * min(self.times - 1, 9)))


def refuse_repeat(ask: Ask) -> None:
    """Refuse a launch that has timed out, unless it may be tried again or has more time."""
    found = _load(ask.device.id).get(_key_of(ask))
    if found is None or ask.timeout_s > found.limit_s or datetime.now(UTC) >= found.until:
        return
    raise ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "kernel_timeout",
        f"{ask.device.id}: this launch did not end when it was sampled at "
        f"{found.at:%Y-%m-%d %H:%M:%S} UTC, and is not run again before "
        f"{found.until:%Y-%m-%d %H:%M:%S} UTC. Change its source, build options, sizes or "
        "arguments; report what whole runs take; ask for an answer that runs nothing "
        '("sampling": "never"); or start the service with a longer --timeout if it is only '
        f"slow. It was said then: {found.reason}",
        detail={
            "timed_out_at": found.at.isoformat(),
            "not_before": found.until.isoformat(),
            "limit_seconds": found.limit_s,
        },
    )


def remember_timeout(ask: Ask, reason: str) -> None:
    """Note that a launch has not ended in time, and what was said of it."""
    known = _load(ask.device.id)
    before = known.pop(_key_of(ask), None)
    known[_key_of(ask)] = TimedOut(
        at=datetime.now(UTC),
        limit_s=ask.timeout_s,
        reason=reason,
        times=1 + (before.times if before else 0),
    )
    _store(ask.device.id, known)


def forget_timeout(ask: Ask) -> None:
    """Note that a launch has ended in time."""
    known = _load(ask.device.id)
    if known.pop(_key_of(ask), None) is not None:
        _store(ask.device.id, known)


def _load(device_id: str) -> dict[str, TimedOut]:
    try:
        return _CONVERTER.loads(_path_of(device_id).read_text(), dict[str, TimedOut])
    except (OSError, ValueError, TypeError, KeyError):  # a damaged file costs one more try
        return {}


def _store(device_id: str, known: dict[str, TimedOut]) -> None:
    """Write all or nothing: a process may end at any time."""
    newest = sorted(known.items(), key=lambda one: one[1].at)[-_MOST:]
    with suppress(OSError):  # a full disk costs the memory, not the answer
        write_private(_path_of(device_id), _CONVERTER.dumps(dict(newest)).encode())


def _path_of(device_id: str) -> Path:
    return data_folder() / "locks" / f"{lock_name(device_id)}.timeouts.json"


def _key_of(ask: Ask) -> str:
    problem = ask.problem
    parts = (problem.kernel.digest, ask.device.driver, str(problem.ndrange), str(problem.arguments))
    return sha256("\0".join(parts).encode()).hexdigest()
