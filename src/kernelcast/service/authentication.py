"""Who calls, and what they may do."""

import asyncio
import re
import stat
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final, NoReturn

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.service.errors import ApiError
from kernelcast.service.logs import log
from kernelcast.service.rate_limit import AttemptCounter, name_address
from kernelcast.service.settings import ServiceSettings
from kernelcast.service.tokens import hash_secret, is_right, parse_token
from kernelcast.service_state import ServiceState

# Changes are seen within a second; this bounds how old tokens are while the database is away.
_HELD_S: Final = 30.0
_UNKNOWN: Final = "the token is not known, or was revoked"
_LINE = re.compile(r"(?P<scopes>[a-z,]+)\s+(?P<token>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request."""

    name: str
    scopes: frozenset[Scope]


class Authenticator:
    """Tells callers by their tokens.

    A right token always opens: whoever guesses beside it, at the same address or at its id, is
    told to wait and keeps nobody else out. A wrong one is compared in memory.
    """

    def __init__(self, settings: ServiceSettings, state: ServiceState) -> None:
        self._settings = settings
        self._state = state
        self._held: dict[str, TokenRecord] | None = None
        self._held_until_s = 0.0
        self._changes = 0
        everything = Caller(name="local", scopes=frozenset(Scope))
        # Who asks without a token, where that may be: most requests of a service on loopback.
        self._local = None if settings.needs_tokens else self._limit(everything)
        most = settings.limits.wrong_tokens
        self._of_address = AttemptCounter(most, time.monotonic)
        self._of_id = AttemptCounter(most, time.monotonic)
        self._reading = asyncio.Lock()
        self._looking = asyncio.Lock()
        file = settings.token_file
        self._of_file = {} if file is None else read_token_file(file)

    def forget(self) -> None:
        """Read every token anew: one was made or revoked."""
        self._held = None
        self._changes += 1

    async def identify(self, authorization: str | None, address: str) -> Caller:
        """Tell who calls."""
        if authorization is None:
            if self._local is None:
                _refuse("this service needs a token: Authorization: Bearer TOKEN")
            return self._local
        kind, _, text = authorization.partition(" ")
        parsed = parse_token(text.strip()) if kind.lower() == "bearer" else None
        if parsed is None:  # no guess at anything: it costs nothing and does not count
            _refuse(_UNKNOWN)
        record = await self._find(parsed.id, address)
        if record is None or record.revoked_at is not None:
            self._refuse_wrong(address, None)
        if not is_right(parsed.secret, record):
            self._refuse_wrong(address, parsed.id)
        return self._limit(Caller(name=record.id, scopes=record.scopes))

    def _limit(self, caller: Caller) -> Caller:
        """Take the right to run kernels away where the service runs none."""
        if self._settings.allow_run or Scope.RUN not in caller.scopes:
            return caller
        return Caller(name=caller.name, scopes=caller.scopes - {Scope.RUN})

    async def _find(self, token_id: str, address: str) -> TokenRecord | None:
        """Find a token in memory; what is not there may have been made within this second."""
        record = (await self._read_all()).get(token_id)
        if record is not None:
            return record
        _refuse_if(self._of_address.wait_s(name_address(address)))
        async with self._looking:  # strangers share one connection to the database
            record = await asyncio.to_thread(self._state.tokens.find, token_id)
        if record is not None:
            self.forget()
        return record

    async def _read_all(self) -> dict[str, TokenRecord]:
        """Give all tokens; they are few, and read once in a while."""
        if self._held is not None and time.monotonic() < self._held_until_s:
            return self._held
        async with self._reading:
            if self._held is not None and time.monotonic() < self._held_until_s:
                return self._held
            changes = self._changes
            rows = await asyncio.to_thread(self._state.tokens.list)
            found = {one.id: one for one in rows} | self._of_file
            if changes == self._changes:
                self._held, self._held_until_s = found, time.monotonic() + _HELD_S
            return found

    def _refuse_wrong(self, address: str, token_id: str | None) -> NoReturn:
        """Count a wrong token and refuse it."""
        source = name_address(address)
        waits = [self._of_address.wait_s(source)]
        is_last = self._of_address.note(source)
        if token_id is not None:
            waits.append(self._of_id.wait_s(token_id))
            is_last = self._of_id.note(token_id) or is_last
        if is_last and not any(waits):
            log("many wrong tokens", level=30, client=address, token=token_id)
        _refuse_if(max((one for one in waits if one is not None), default=None))
        _refuse(_UNKNOWN)


def read_token_file(path: Path) -> dict[str, TokenRecord]:
    """Read tokens that a host's administrator keeps in a file.

    Parameters
    ----------
    path : Path
        A line per token, ``SCOPE[,SCOPE...] TOKEN``; empty lines and ``#`` comments are allowed.

    Returns
    -------
    dict of str to TokenRecord
        By id; secrets are hashed.
    """
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: the token file cannot be read: {error}"
        raise InputError(msg) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        msg = f"{path}: others can read this token file; run `chmod 600 {path}`"
        raise InputError(msg)
    found = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            record = _read_line(line.strip(), f"{path}:{number}")
            found[record.id] = record
    return found


def _read_line(line: str, place: str) -> TokenRecord:
    match = _LINE.fullmatch(line)
    parsed = None if match is None else parse_token(match["token"])
    if match is None or parsed is None:
        msg = f"{place}: expected SCOPE[,SCOPE...] TOKEN, tokens as `kernelcast serve token` makes"
        raise InputError(msg)
    return TokenRecord(
        id=parsed.id,
        name=place,
        digest=hash_secret(parsed.secret),
        scopes=read_scopes(match["scopes"]),
        created_at=datetime.now(UTC),
    )


def read_scopes(text: str) -> frozenset[Scope]:
    """Read scopes with commas between them.

    Examples
    --------
    >>> sorted(read_scopes("run,estimate"))
    [<Scope.ESTIMATE: 'estimate'>, <Scope.RUN: 'run'>]
    """
    names = [one.strip() for one in text.split(",")]
    known = {one.value: one for one in Scope}
    unknown = [one for one in names if one not in known]
    if unknown:
        msg = f"scope {', '.join(map(repr, unknown))}: give some of {', '.join(known)}"
        raise InputError(msg)
    return frozenset(known[one] for one in names)


def require(caller: Caller, scope: Scope) -> None:
    """Refuse a caller who lacks a scope."""
    if scope not in caller.scopes:
        raise ApiError(
            HTTPStatus.FORBIDDEN,
            "missing_scope",
            f"this needs the scope {scope.value!r}; the caller has "
            f"{', '.join(sorted(caller.scopes)) or 'none'}",
            detail={"scope": scope.value},
        )


def _refuse(message: str) -> NoReturn:
    raise ApiError(HTTPStatus.UNAUTHORIZED, "unauthorized", message)


def _refuse_if(wait_s: int | None) -> None:
    if wait_s is not None:
        raise ApiError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too_many_wrong_tokens",
            f"too many wrong tokens; try again in {wait_s} s",
            retry_after_s=wait_s,
        )
