"""``kernelcast serve``: the predictor service and its tokens."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import complain, present, show, wants_json
from kernelcast.launches.data_store import STORE_VARIABLE, choose_store
from kernelcast.records.plain import to_plain
from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.reports.presenter import Table
from kernelcast.service.settings import ServiceSettings
from kernelcast.service_state import ServiceState, open_state
from kernelcast.training.registry import MODELS_VARIABLE

_SECRET: Final = ("digest",)
_database: Any = option.given(
    "--database URL",
    "Store of observations, and of the service's own state: a SQLite file, or "
    f"postgresql://user@host/database.  [default: {STORE_VARIABLE}, or observations.sqlite in the "
    "data folder]",
    envvar=STORE_VARIABLE,
)


@option.command(
    json="", is_group=True, short="Answer over HTTP: estimates, observations, models, jobs.",
)  # fmt: skip
def serve(
    settings: ServiceSettings = option.settings(
        host=option.given("--host ADDRESS", "Address to listen at; any but loopback needs tokens."),
        port=option.given("--port N", "Port to listen at.", type=click.IntRange(0, 65535)),
        database=_database,
        registry=option.given(
            "--registry URL",
            f"Trained models.  [default: {MODELS_VARIABLE}, or models in the data folder]",
            envvar=MODELS_VARIABLE,
        ),
        workers=option.given("--workers N", "Processes that answer; all share the database."),
        token_file=option.given(
            "--token-file FILE",
            "Also take the tokens of this file, a line 'SCOPE[,SCOPE...] TOKEN' each, which only "
            "its owner may read.",
            type=click.Path(path_type=Path, dir_okay=False),
        ),
        require_tokens=option.given("--require-tokens", "Need a token on loopback too."),
        trusted_proxies=option.given(
            "--trusted-proxy NETWORK",
            "Believe X-Forwarded-For and X-Forwarded-Proto of a proxy at this address or network; "
            "may be repeated. Callers then need tokens, on loopback too.",
        ),
        allow_run=option.given(
            "--allow-run", "Compile and run submitted kernels, for callers with the scope 'run'."
        ),
        sandbox=option.given(
            "--sandbox",
            "Confine the processes that read and run what callers submit, by bubblewrap: where it "
            "works, always, or never.",
        ),
        refine_share=option.given(
            "--refine SHARE", "Share of idle time for sampling earlier questions again; 0: none.",
            type=click.FloatRange(0, 1),
        ),
        least_gain=option.least_gain,
        runs_jobs=option.given("--no-jobs", "Leave jobs to other hosts."),
        limits=option.settings(
            queue=option.given(
                "--queue N", "Samplings that may wait for a device in each process; more get 503.",
            ),
            answer_days=option.given(
                "--keep-answers DAYS", "How long answers are kept, at most two million.",
                type=option.POSITIVE,
            ),
            sample_seconds=option.given(
                "--timeout SECONDS", "Limit for each sampling, build included.",
                type=option.POSITIVE,
            ),
        ),
        log_level=option.given(
            "--log-level", "Least level of log lines; a request is a line of level info.",
            type=click.Choice(["debug", "info", "warning", "error"]),
        ),
    ),
) -> None:  # fmt: skip
    """Answer over HTTP, until Ctrl-C or a signal ends it.

    By default on loopback, without tokens. Estimates that need no sampling come at once; one
    sampling at a time runs on a device. Jobs continue after a crash. The log goes to standard
    error, one JSON object per line.

    Exit status: 0 when it ended in order, 1 when it could not start, 2 for bad input.
    """
    from kernelcast.service.app import serve as run_service
    from kernelcast.service.authentication import read_token_file

    settings = replace(settings, database=settings.database or str(choose_store()))
    file_tokens = {} if settings.token_file is None else read_token_file(settings.token_file)
    with _open(settings.database) as state:
        tokens = [one for one in state.tokens.list() if one.revoked_at is None]
    if settings.needs_tokens and not (file_tokens or tokens):
        complain("there are no tokens yet: `kernelcast serve token create NAME` makes one")
    # Before anything listens: a sandbox that is required and does not work ends it here.
    if gap := settings.describe_gap(*settings.protect(str(settings.database))):
        complain(gap)
    run_service(settings, lambda address: show(f"serving at {address} (Ctrl-C ends it)"))


@click.group(short_help="Make, list and revoke tokens.")
def token() -> None:
    """Make, list and revoke tokens of the service."""


serve.add_command(token)


@option.command(of=token, short="Make a token.")
def create(
    name: str = option.argument("NAME"),
    scopes: tuple[str, ...] = option.given(
        "--scope",
        "What the caller may do: ask for estimates, report observations, have submitted kernels "
        "run, administrate; may be repeated.",
        type=click.Choice([one.value for one in Scope]),
        default=(Scope.ESTIMATE.value,),
    ),
    database: str | None = _database,
) -> None:
    """Make a token for NAME and print it.

    It is shown this once: only a hash of it is kept.
    """
    from kernelcast.service.authentication import make_token

    text, record = make_token(name, frozenset(map(Scope, scopes)))
    with _open(database) as state:
        state.tokens.add(record)
    present({**to_plain(record, omit=_SECRET), "token": text}, text)
    if not wants_json():
        who = f"token {record.id} for {record.name} ({_list_scopes(record)})"
        complain(f"{who}; it is not shown again")


@option.command("list", of=token, short="List the tokens.")
def list_tokens(
    database: str | None = _database,
) -> None:
    """List the tokens by their ids; secrets are not known."""
    with _open(database) as state:
        tokens = state.tokens.list()
    table = Table.of(tokens, {
        "id": "text", "name": "text", "scopes": ("text", _list_scopes),
        "made": ("text", lambda one: f"{one.created_at:%Y-%m-%d %H:%M}"),
        "revoked": ("text", lambda one: (
            "" if one.revoked_at is None else f"{one.revoked_at:%Y-%m-%d %H:%M}"
        )),
    })  # fmt: skip
    nothing = "no tokens yet; `kernelcast serve token create NAME` makes one"
    content = [to_plain(one, omit=_SECRET) for one in tokens]
    present(content, table if tokens else nothing)


@option.command(of=token, short="Refuse a token from now on.")
def revoke(
    token_id: str = option.argument("ID"),
    database: str | None = _database,
) -> None:
    """Refuse a token from now on; running services see it within seconds."""
    with _open(database) as state:
        record = state.tokens.revoke(token_id)
    told = f"token {record.id} for {record.name} is refused from now on"
    present(to_plain(record, omit=_SECRET), told)


def _open(database: str | None) -> ServiceState:
    return open_state(database or choose_store())


def _list_scopes(record: TokenRecord) -> str:
    return ", ".join(sorted(record.scopes))
