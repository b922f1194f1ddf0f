"""``kernelcast serve``: the predictor service and its tokens."""

import importlib.util
from pathlib import Path
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.groups import LazyGroup
from kernelcast.launches.data_store import STORE_VARIABLE
from kernelcast.records.errors import InputError
from kernelcast.training.registry import MODELS_VARIABLE

_HOST = "127.0.0.1"
_PORT = 8372
_QUEUE = 8
_TIMEOUT_S = 60.0
_REFINE_SHARE = 0.02

database_option = click.option(
    "--database",
    metavar="URL",
    envvar=STORE_VARIABLE,
    help="Store of observations, and of the service's own state: a SQLite file, or "
    f"postgresql://user@host/database.  [default: {STORE_VARIABLE}, or observations.sqlite in the "
    "data folder]",
)


@click.group(
    "serve",
    invoke_without_command=True,
    context_settings={"show_default": True},
    short_help="Answer over HTTP: estimates, observations, models, jobs.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default=_HOST,
    help="Address to listen at; any but loopback needs tokens.",
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=_PORT, help="Port to listen at."
)
@database_option
@click.option(
    "--registry",
    metavar="URL",
    envvar=MODELS_VARIABLE,
    help=f"Trained models.  [default: {MODELS_VARIABLE}, or models in the data folder]",
)
@option.count("--workers", default=1, says="Processes that answer; all share the database.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also take the tokens of this file, a line 'SCOPE[,SCOPE...] TOKEN' each; only its owner "
    "may be able to read it.",
)
@option.flag(
    "--require-tokens", says="Need a token on loopback too; any other address always needs one."
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    metavar="NETWORK",
    multiple=True,
    help="Believe what a proxy at this address or network says of where a request began "
    "(X-Forwarded-For and -Proto, or Forwarded); may be repeated. Callers then need tokens, on "
    "loopback too.",
)
@option.flag(
    "--allow-run", says="Compile and run submitted kernels, for callers with the scope 'run'."
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "required", "off"]),
    default="auto",
    help="Confine the processes that read and run what callers submit, by bubblewrap: where it "
    "works, always, or never. Outside it a kernel on a CPU device can do what this user can.",
)
@click.option(
    "--refine",
    "refine_share",
    metavar="SHARE",
    type=click.FloatRange(0, 1),
    default=_REFINE_SHARE,
    help="Share of the time that may go into sampling again what somebody has asked for, while no "
    "request waits, so that the next answer is better; 0: none.",
)
@option.least_gain
@option.flag("--no-jobs", says="Leave jobs to other hosts.")
@option.count(
    "--queue",
    default=_QUEUE,
    says="Samplings that may wait for a device in each process; more are told to come again.",
)
@option.timeout(_TIMEOUT_S, "Limit for each sampling, build included.")
@option.debug
@click.pass_context
def serve(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - ServiceSettings has the types
    """Answer over HTTP, until Ctrl-C or a signal ends it.

    On loopback without tokens, unless told otherwise. Estimates that need no sampling (kept ones,
    history, the analytic model) come at once; one sampling at a time runs on a device. Jobs go on
    where they were after any crash. The log goes to standard error, one JSON object per line.

    Exit status: 0 when it ended in order, 1 when it could not start, 2 for bad input.
    """
    if ctx.invoked_subcommand is None:
        require_service()
        from kernelcast.cli.serve.run import run_service

        run_service(**options)


@serve.group(
    "token",
    cls=LazyGroup,
    places="""
        create serve.tokens:create
        list serve.tokens:list_
        revoke serve.tokens:revoke
    """,
    short_help="Make, list and revoke tokens.",
)
def token() -> None:
    """Make, list and revoke tokens of the service."""


def require_service() -> None:
    """Say how to install what only the service needs."""
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        if importlib.util.find_spec(module) is None:
            msg = f"the service needs {module}; install it with `pip install 'kernelcast[service]'`"
            raise InputError(msg)
