"""Runs ``kernelcast serve``."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelcast.cli.terminal import complain, make_table, show, show_json, show_line
from kernelcast.launches.data_store import choose_store
from kernelcast.predictor.confinement import SandboxMode
from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.reports.plain import to_plain
from kernelcast.service_state import ServiceState, open_state

_SECRET = ("salt", "digest")


def run_service(  # noqa: PLR0913 - options that are no settings as they are
    *,
    database: str | None,
    token_file: Path | None,
    sandbox: str,
    no_jobs: bool,
    queue: int,
    timeout_s: float,
    **options: Any,  # noqa: ANN401 - ServiceSettings has the types
) -> None:
    """Check what can be checked before anything listens, then serve."""
    from kernelcast.service.authentication import read_token_file
    from kernelcast.service.process import serve
    from kernelcast.service.sandboxing import describe_gap, protect
    from kernelcast.service.settings import Limits, ServiceSettings

    settings = ServiceSettings(
        **options,
        database=database or str(choose_store()),
        sandbox=SandboxMode(sandbox),
        token_file=token_file,
        runs_jobs=not no_jobs,
        limits=replace(Limits(), queue=queue, sample_seconds=timeout_s),
    )
    known = {} if token_file is None else read_token_file(token_file)
    with _open(settings.database) as state:
        tokens = [one for one in state.tokens.list() if one.revoked_at is None]
    if settings.needs_tokens and not (known or tokens):
        complain("there are no tokens yet: `kernelcast serve token create NAME` makes one")
    # Before anything listens: a sandbox that is required and does not work ends it here.
    if gap := describe_gap(settings, protect(settings, str(settings.database))):
        complain(gap)
    serve(settings, lambda address: show_line(f"serving at {address} (Ctrl-C ends it)"))


def create_token(name: str, scopes: Sequence[str], database: str | None, *, as_json: bool) -> None:
    """Make a token and print it."""
    from kernelcast.service.tokens import make_token

    text, record = make_token(name, frozenset(map(Scope, scopes)))
    with _open(database) as state:
        state.tokens.add(record)
    if as_json:
        show_json({**to_plain(record, omit=_SECRET), "token": text})
        return
    show_line(text)
    complain(f"token {record.id} for {name} ({_list_scopes(record)}); it is not shown again")


def list_tokens(database: str | None, *, as_json: bool) -> None:
    """List the tokens."""
    with _open(database) as state:
        found = state.tokens.list()
    if as_json:
        show_json([to_plain(one, omit=_SECRET) for one in found])
        return
    if not found:
        show_line("no tokens yet; `kernelcast serve token create NAME` makes one")
        return
    table = make_table("id", "name", "scopes", "made", "revoked")
    for one in found:
        revoked = "" if one.revoked_at is None else f"{one.revoked_at:%Y-%m-%d %H:%M}"
        made = f"{one.created_at:%Y-%m-%d %H:%M}"
        table.add_row(one.id, one.name, _list_scopes(one), made, revoked)
    show(table)


def revoke_token(token_id: str, database: str | None, *, as_json: bool) -> None:
    """Refuse a token from now on."""
    with _open(database) as state:
        record = state.tokens.revoke(token_id)
    if as_json:
        show_json(to_plain(record, omit=_SECRET))
    else:
        show_line(f"token {record.id} for {record.name} is refused from now on")


def _open(database: str | None) -> ServiceState:
    return open_state(database or choose_store())


def _list_scopes(one: TokenRecord) -> str:
    return ", ".join(sorted(one.scopes))
