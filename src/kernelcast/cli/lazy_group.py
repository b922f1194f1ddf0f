"""Groups whose commands are imported when they are asked for: each loads its own libraries."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """Imports the command that is asked for, and no other.

    Parameters
    ----------
    places : mapping of str to str
        Where each command is, ``module:function``.
    """

    def __init__(self, *args: Any, places: Mapping[str, str], **options: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **options)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        if cmd_name not in self._places:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._places[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command
