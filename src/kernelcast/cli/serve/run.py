"""Runs ``kernelcast serve``."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelcast.cli.terminal import complain, show_line
from kernelcast.launches.data_store import choose_store
from kernelcast.predictor.confinement import SandboxMode
from kernelcast.service_state import open_state


def run_service(
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
    with open_state(settings.database or choose_store()) as state:
        tokens = [one for one in state.tokens.list() if one.revoked_at is None]
    if settings.needs_tokens and not (known or tokens):
        complain("there are no tokens yet: `kernelcast serve token create NAME` makes one")
    # Before anything listens: a sandbox that is required and does not work ends it here.
    if gap := describe_gap(settings, protect(settings, str(settings.database))):
        complain(gap)
    serve(settings, lambda address: show_line(f"serving at {address} (Ctrl-C ends it)"))
