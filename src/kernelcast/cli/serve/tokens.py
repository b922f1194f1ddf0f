"""``kernelcast serve token``."""

import click

from kernelcast.cli import options as option
from kernelcast.cli.serve.command import database_option, require_service
from kernelcast.cli.terminal import complain, make_table, show, show_json, show_line
from kernelcast.launches.data_store import choose_store
from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.reports.plain import to_plain
from kernelcast.service_state import ServiceState, open_state

_SECRET = ("digest",)


@click.command("create", short_help="Make a token.", context_settings={"show_default": True})
@click.argument("name", metavar="NAME")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([one.value for one in Scope]),
    multiple=True,
    default=(Scope.ESTIMATE.value,),
    help="What the caller may do: ask for estimates, report observations, have submitted kernels "
    "run, administrate; may be repeated.",
)
@database_option
@option.json("Print JSON.")
@option.debug
def create(name: str, scopes: tuple[str, ...], database: str | None, *, as_json: bool) -> None:
    """Make a token for NAME and print it.

    It is shown this once: only a hash of it is kept.
    """
    require_service()
    from kernelcast.service.tokens import make_token

    text, record = make_token(name, frozenset(map(Scope, scopes)))
    with _open(database) as state:
        state.tokens.add(record)
    if as_json:
        show_json({**to_plain(record, omit=_SECRET), "token": text})
        return
    show_line(text)
    complain(f"token {record.id} for {name} ({_list_scopes(record)}); it is not shown again")


@click.command("list", short_help="List the tokens.")
@database_option
@option.json_flag
@option.debug
def list_(database: str | None, *, as_json: bool) -> None:
    """List the tokens by their ids; secrets are not known."""
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


@click.command("revoke", short_help="Refuse a token from now on.")
@click.argument("token_id", metavar="ID")
@database_option
@option.json("Print JSON.")
@option.debug
def revoke(token_id: str, database: str | None, *, as_json: bool) -> None:
    """Refuse a token from now on; running services see it within seconds."""
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
