"""Who calls, and what they may do: tokens, how they look, and how their secrets are kept."""

import asyncio
import hashlib
import hmac
import re
import secrets
import stat
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final, NoReturn

from cachetools import TTLCache

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.service.errors import ApiError
from kernelcast.service.guard import is_text
from kernelcast.service.settings import ServiceSettings
from kernelcast.service.telemetry import log
from kernelcast.service_state import ServiceState

_UNKNOWN: Final = "the token is not known, or was revoked"
_LINE = re.compile(r"(?P<scopes>[a-z,]+)\s+(?P<token>\S+)")
_TOKEN = re.compile(r"kc_(?P<id>[0-9a-f]{12})_(?P<secret>[A-Za-z0-9_-]{43})")


def make_token(name: str, scopes: frozenset[Scope]) -> tuple[str, TokenRecord]:
    """Make a new token: its text, which is shown once and kept nowhere, and what is kept."""
    if not is_text(name):
        raise InputError(f"token name {name!a}: holds what cannot be stored as text; give another")
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    record = TokenRecord(
        id=token_id,
        name=name,
        digest=hash_secret(secret),
        scopes=scopes,
        created_at=datetime.now(UTC),
    )
    return f"kc_{token_id}_{secret}", record


def parse_token(text: str) -> tuple[str, str] | None:
    """Take a token apart into id and secret; None if it is none."""
    match = _TOKEN.fullmatch(text)
    return None if match is None else (match["id"], match["secret"])


def hash_secret(secret: str) -> bytes:
    # 256 random bits are found by no trying, however fast the hash is (ADR 0025).
    return hashlib.sha256(secret.encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    name: str
    scopes: frozenset[Scope]


class Authenticator:
    """Tells callers by their tokens; a right one opens although somebody guesses at its secret."""

    def __init__(self, settings: ServiceSettings, state: ServiceState) -> None:
        self._settings = settings
        self._state = state
        self.forget()
        # Where the service runs no kernels, the right to do so is taken away.
        self._withheld = frozenset(() if settings.allow_run else {Scope.RUN})
        # Who asks without a token, where that may be: most requests of a service on loopback.
        everything = Caller(name="local", scopes=frozenset(Scope) - self._withheld)
        self._local = None if settings.needs_tokens else everything
        # Times of wrong secrets by the token's id, for a minute from the first one.
        self._guesses: TTLCache[str, list[float]] = TTLCache(10_000, 60.0)
        self._looking = asyncio.Lock()
        file = settings.token_file
        self._of_file = {} if file is None else read_token_file(file)

    def forget(self) -> None:
        """Read every token anew: one was made or revoked."""
        # Changes are seen within a second; the time bounds how old tokens are while the database is
        # away.
        self._known: TTLCache[str, TokenRecord] = TTLCache(10_000, 30.0)

    async def identify(self, authorization: str | None) -> Caller:
        if authorization is None:
            if self._local is None:
                _refuse("this service needs a token: Authorization: Bearer TOKEN")
            return self._local
        kind, _, text = authorization.partition(" ")
        parsed = parse_token(text.strip()) if kind.lower() == "bearer" else None
        record = None if parsed is None else await self._find(parsed[0])
        if parsed is None or record is None or record.revoked_at is not None:
            _refuse(_UNKNOWN)
        if not hmac.compare_digest(hash_secret(parsed[1]), record.digest):
            token_id = parsed[0]
            most, now_s = self._settings.limits.wrong_tokens, time.monotonic()
            times = self._guesses.setdefault(token_id, [])
            if len(times) >= most:
                wait_s = max(1, round(times[0] + 60 - now_s))
                raise ApiError(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    "too_many_wrong_tokens",
                    f"too many wrong tokens; try again in {wait_s} s",
                    retry_after_s=wait_s,
                )
            times.append(now_s)
            if len(times) == most:
                log("many wrong tokens", level=30, token=token_id)
            _refuse(_UNKNOWN)
        return Caller(name=record.id, scopes=record.scopes - self._withheld)

    async def _find(self, token_id: str) -> TokenRecord | None:
        known = self._known  # not what `forget` puts in its place meanwhile
        record = self._of_file.get(token_id) or known.get(token_id)
        if record is None:
            async with self._looking:  # strangers share one connection to the database
                record = await asyncio.to_thread(self._state.tokens.find, token_id)
            if record is not None:
                known[token_id] = record
        return record


def read_token_file(path: Path) -> dict[str, TokenRecord]:
    """Read a host's tokens by their ids: a line each, ``SCOPE[,SCOPE...] TOKEN``, or a comment."""
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the token file cannot be read: {error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(f"{path}: others can read this token file; run `chmod 600 {path}`")
    found = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        place, match = f"{path}:{number}", _LINE.fullmatch(line.strip())
        parsed = None if match is None else parse_token(match["token"])
        if match is None or parsed is None:
            wanted = "SCOPE[,SCOPE...] TOKEN, tokens as `kernelcast serve token` makes"
            raise InputError(f"{place}: expected {wanted}")
        names = match["scopes"].split(",")
        if unknown := [one for one in names if one not in set(Scope)]:
            told = ", ".join(map(repr, unknown))
            raise InputError(f"{place}: scope {told}: give some of {', '.join(Scope)}")
        found[parsed[0]] = TokenRecord(
            id=parsed[0], name=place, digest=hash_secret(parsed[1]),
            scopes=frozenset(map(Scope, names)), created_at=datetime.now(UTC),
        )  # fmt: skip
    return found


def _refuse(message: str) -> NoReturn:
    raise ApiError(HTTPStatus.UNAUTHORIZED, "unauthorized", message)
