"""``kernelcast serve``: the predictor service and its tokens."""

from pathlib import Path
from typing import Any, Final

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import Group, complain, present, show, wants_json
from kernelcast.launches.data_store import STORE_VARIABLE, choose_store
from kernelcast.records.plain import to_plain
from kernelcast.records.service_state import Scope, TokenRecord
from kernelcast.reports.presenter import Table
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


@click.group(
    "serve",
    cls=Group,
    invoke_without_command=True,
    context_settings={"show_default": True},
    short_help="Answer over HTTP: estimates, observations, models, jobs.",
)
@click.option(
    "--host", metavar="ADDRESS", default="127.0.0.1",
    help="Address to listen at; any but loopback needs tokens.",
)  # fmt: skip
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=8372, help="Port to listen at."
)
@option.make_option("database", _database.metadata, str)
@click.option(
    "--registry", metavar="URL", envvar=MODELS_VARIABLE,
    help=f"Trained models.  [default: {MODELS_VARIABLE}, or models in the data folder]",
)  # fmt: skip
@click.option(
    "--workers", metavar="N", type=option.COUNT, default=1,
    help="Processes that answer; all share the database.",
)  # fmt: skip
@click.option(
    "--token-file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Also take the tokens of this file, a line 'SCOPE[,SCOPE...] TOKEN' each, which only its "
         "owner may read.",
)  # fmt: skip
@click.option(
    "--require-tokens", is_flag=True,
    help="Need a token on loopback too."
)  # fmt: skip
@click.option(
    "--trusted-proxy", "trusted_proxies", metavar="NETWORK", multiple=True,
    help="Believe X-Forwarded-For and X-Forwarded-Proto of a proxy at this address or network; "
         "may be repeated. Callers then need tokens, on loopback too.",
)  # fmt: skip
@click.option(
    "--allow-run", is_flag=True,
    help="Compile and run submitted kernels, for callers with the scope 'run'."
)  # fmt: skip
@click.option(
    "--sandbox", type=click.Choice(["auto", "required", "off"]), default="auto",
    help="Confine the processes that read and run what callers submit, by bubblewrap: where it "
         "works, always, or never.",
)  # fmt: skip
@click.option(
    "--refine", "refine_share", metavar="SHARE", type=click.FloatRange(0, 1), default=0.02,
    help="Share of idle time for sampling earlier questions again; 0: none.",
)  # fmt: skip
@option.make_option("least_gain", option.least_gain.metadata, float)
@click.option("--no-jobs", is_flag=True, help="Leave jobs to other hosts.")
@click.option(
    "--queue", metavar="N", type=option.COUNT, default=8,
    help="Samplings that may wait for a device in each process; more get 503.",
)  # fmt: skip
@click.option(
    "--keep-answers", "answer_days", metavar="DAYS", type=click.FloatRange(0, min_open=True),
    default=400.0,
    help="How long answers are kept, at most two million.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info",
    help="Least level of log lines; a request is a line of level info.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", metavar="SECONDS", type=option.POSITIVE, default=60.0,
    help="Limit for each sampling, build included.",
)  # fmt: skip
@option.debug
@click.pass_context
def serve(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - ServiceSettings has the types
    """Answer over HTTP, until Ctrl-C or a signal ends it.

    By default on loopback, without tokens. Estimates that need no sampling come at once; one
    sampling at a time runs on a device. Jobs continue after a crash. The log goes to standard
    error, one JSON object per line.

    Exit status: 0 when it ended in order, 1 when it could not start, 2 for bad input.
    """
    if ctx.invoked_subcommand is not None:
        return
    from kernelcast.predictor.confinement import SandboxMode
    from kernelcast.service.app import serve as run_service
    from kernelcast.service.authentication import read_token_file
    from kernelcast.service.settings import Limits, ServiceSettings

    limits = Limits(
        queue=options.pop("queue"), sample_seconds=options.pop("timeout_s"),
        answer_days=options.pop("answer_days"),
    )  # fmt: skip
    settings = ServiceSettings(
        database=options.pop("database") or str(choose_store()),
        sandbox=SandboxMode(options.pop("sandbox")),
        runs_jobs=not options.pop("no_jobs"),
        limits=limits,
        **options,
    )
    file_tokens = {} if settings.token_file is None else read_token_file(settings.token_file)
    with open_state(settings.database or choose_store()) as state:
        tokens = [one for one in state.tokens.list() if one.revoked_at is None]
    if settings.needs_tokens and not (file_tokens or tokens):
        complain("there are no tokens yet: `kernelcast serve token create NAME` makes one")
    # Before anything listens: a sandbox that is required and does not work ends it here.
    if gap := settings.describe_gap(settings.protect(str(settings.database))):
        complain(gap)
    run_service(settings, lambda address: show(f"serving at {address} (Ctrl-C ends it)"))


@serve.group("token", cls=Group, short_help="Make, list and revoke tokens.")
def token() -> None:
    """Make, list and revoke tokens of the service."""


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
