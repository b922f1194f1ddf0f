"""Tokens: how they look, and how their secrets are kept."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.service.plain_text import is_text

_SECRET_BYTES: Final = 32
_TOKEN = re.compile(r"kc_(?P<id>[0-9a-f]{12})_(?P<secret>[A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class ParsedToken:
    """A token taken apart."""

    id: str
    secret: str


def make_token(name: str, scopes: frozenset[Scope]) -> tuple[str, TokenRecord]:
    """Make a new token.

    Returns
    -------
    text : str
        The token; it is shown once and kept nowhere.
    record : TokenRecord
        What is kept.
    """
    if not is_text(name):
        msg = f"token name {name!a}: holds what cannot be stored as text; give another"
        raise InputError(msg)
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(_SECRET_BYTES)
    record = TokenRecord(
        id=token_id,
        name=name,
        digest=hash_secret(secret),
        scopes=scopes,
        created_at=datetime.now(UTC),
    )
    return f"kc_{token_id}_{secret}", record


def parse_token(text: str) -> ParsedToken | None:
    """Take a token apart; None if it is none.

    Examples
    --------
    >>> parse_token("kc_0123456789ab_" + "x" * 43).id
    '0123456789ab'
    >>> parse_token("password") is None
    True
    """
    match = _TOKEN.fullmatch(text)
    return None if match is None else ParsedToken(match["id"], match["secret"])


def hash_secret(secret: str) -> bytes:
    """Hash a secret.

    It is 256 random bits. Nobody finds those by trying, however fast the hash is, and no two are
    alike; a slow hash would only let strangers keep our processors busy (ADR 0025).
    """
    return hashlib.sha256(secret.encode()).digest()


def is_right(secret: str, record: TokenRecord) -> bool:
    """Tell whether a secret is the one of a token."""
    return hmac.compare_digest(hash_secret(secret), record.digest)
