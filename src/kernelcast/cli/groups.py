"""Groups of commands; a command is imported when it is asked for: each loads its own libraries."""

import importlib
from typing import Any

import click


class LazyGroup(click.Group):
    """Imports the command that is asked for, and no other.

    Parameters
    ----------
    places : str
        A command each, as ``name module:function``.
    """

    def __init__(self, *args: Any, places: str, **options: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **options)
        self._places = dict(one.split() for one in places.strip().splitlines())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        if cmd_name not in self._places:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._places[cmd_name].partition(":")
        found = importlib.import_module(f"kernelcast.cli.{module}")
        command: click.Command = getattr(found, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; where none has the name, name the nearest."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            from difflib import get_close_matches  # no right command pays for it

            for one in get_close_matches(args[0], self.list_commands(ctx), 1):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {one!r}?")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    places="""
        check data.commands:check_rows
        export data.commands:export_rows
        import data.commands:import_files
        ls data.commands:list_rows
        merge data.commands:merge_rows
        rm data.removal:remove_rows
        show data.commands:show_rows
    """,
    short_help="Look at, check, remove and exchange observations.",
)
def data() -> None:
    """Look at, check and exchange observations: what models learn from.

    The store is a SQLite file in the data folder (KERNELCAST_DATA), or what --store or
    KERNELCAST_STORE name: another file, or a PostgreSQL database by URL that several machines
    share.
    """


@click.group(
    cls=LazyGroup,
    places="""
        cpu model.cpu:cpu
        fit model.fit:fit
        gpu model.gpu:gpu
        scratchpad model.scratchpad:scratchpad
    """,
    short_help="Ask the analytic models of caches, bandwidth and latency.",
)
def model() -> None:
    """Ask the analytic models: time from addresses and a machine description, nothing is run."""


@click.group(
    cls=LazyGroup,
    places="""
        ls models:list_versions
        pin models:pin_version
        rollback models:roll_back
        show models:show_model
        unpin models:unpin_version
    """,
    short_help="Look at trained models, pin them, roll back.",
)
def models() -> None:
    """Look at trained models, pin a version, roll back.

    A registry is a folder or URL with the versions of each model. Estimates use the pinned
    version, else the latest. It is `models` in the data folder (KERNELCAST_DATA), or what
    --registry or KERNELCAST_MODELS name.
    """
