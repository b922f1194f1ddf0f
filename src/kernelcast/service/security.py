"""Who calls, and what they may do."""

import asyncio
import hashlib
import re
import stat
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final, NoReturn

from kernelcast.predictor.service_state import ServiceState
from kernelcast.records.errors import InputError
from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.service.errors import ApiError
from kernelcast.service.settings import ServiceSettings
from kernelcast.service.tokens import ParsedToken, hash_secret, is_right, parse_token

_REMEMBERED_S: Final = 30.0
_MOST_REMEMBERED: Final = 1000
_MOST_ADDRESSES: Final = 10_000
_WINDOW_S: Final = 60.0
# Hashing takes 40 ms and 16 MiB: guesses must not take all processors and memory.
_HASHES_AT_ONCE: Final = 2
_LINE = re.compile(r"(?P<scopes>[a-z,]+)\s+(?P<token>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request.

    Parameters
    ----------
    name : str
        Id of the token; ``local`` without one.
    scopes : frozenset of Scope
        What may be done.
    """

    name: str
    scopes: frozenset[Scope]


class Gate:
    """Tells callers by their tokens.

    Parameters
    ----------
    settings : ServiceSettings
        Whether tokens are needed, and whether kernels may be run at all.
    state : ServiceState
        Where tokens are.
    clock : callable
        Gives seconds; for tests.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        state: ServiceState,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._state = state
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._hashing = asyncio.Semaphore(_HASHES_AT_ONCE)
        file = settings.token_file
        self._of_file = {} if file is None else read_token_file(file)

    def forget(self) -> None:
        """Check every token anew: one was made or revoked."""
        self._known.clear()

    async def identify(
        self, authorization: str | None, address: str, *, is_counted: bool = True
    ) -> Caller:
        """Tell who calls.

        Parameters
        ----------
        authorization : str or None
            The header ``Authorization: Bearer TOKEN``.
        address : str
            Of the caller.
        is_counted : bool
            Whether a wrong token counts; not if the same request is looked at once more.

        Raises
        ------
        ApiError
            401 without a valid token where one is needed, 429 after too many wrong ones.
        StoreError
            If the database does not answer.
        """
        if authorization is None:
            if self._settings.needs_tokens:
                _refuse("this service needs a token: Authorization: Bearer TOKEN")
            return self._limit(Caller(name="local", scopes=frozenset(Scope)))
        self._refuse_guessing(address)
        kind, _, text = authorization.partition(" ")
        parsed = parse_token(text.strip()) if kind.lower() == "bearer" else None
        caller = None if parsed is None else await self._look_up(text.strip(), parsed)
        if caller is None:
            if is_counted:
                self._note_wrong(address)
            _refuse("the token is not known, or was revoked")
        return self._limit(caller)

    def _limit(self, caller: Caller) -> Caller:
        """Take the right to run kernels away where the service runs none."""
        if self._settings.allow_run or Scope.RUN not in caller.scopes:
            return caller
        return Caller(name=caller.name, scopes=caller.scopes - {Scope.RUN})

    async def _look_up(self, text: str, parsed: ParsedToken) -> Caller | None:
        key = hashlib.sha256(text.encode()).digest()
        found = self._known.get(key)
        if found is not None and self._clock() < found[1]:
            return found[0]
        record = self._of_file.get(parsed.id)
        if record is None:
            record = await asyncio.to_thread(self._state.tokens.find, parsed.id)
        if record is None or record.revoked_at is not None:
            return None
        async with self._hashing:
            if not await asyncio.to_thread(is_right, parsed.secret, record):
                return None
        caller = Caller(name=record.id, scopes=record.scopes)
        self._known[key] = (caller, self._clock() + _REMEMBERED_S)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return caller

    def _refuse_guessing(self, address: str) -> None:
        times = self._wrong.get(address)
        now_s = self._clock()
        while times and times[0] < now_s - _WINDOW_S:
            times.popleft()
        if times and len(times) >= self._settings.limits.wrong_tokens:
            wait_s = max(1, round(times[0] + _WINDOW_S - now_s))
            raise ApiError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too_many_wrong_tokens",
                f"too many wrong tokens from this address; try again in {wait_s} s",
                retry_after_s=wait_s,
            )

    def _note_wrong(self, address: str) -> None:
        self._wrong.setdefault(address, deque()).append(self._clock())
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)


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

    Raises
    ------
    InputError
        If the file cannot be read, others may read it too, or a line is none.
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
    salt = hashlib.sha256(place.encode()).digest()
    return TokenRecord(
        id=parsed.id,
        name=place,
        salt=salt,
        digest=hash_secret(parsed.secret, salt),
        scopes=read_scopes(match["scopes"]),
        created_at=datetime.now(UTC),
    )


def read_scopes(text: str) -> frozenset[Scope]:
    """Read scopes with commas between them.

    Raises
    ------
    InputError
        If one is unknown.

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
    """Refuse a caller who lacks a scope.

    Raises
    ------
    ApiError
        403.
    """
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
