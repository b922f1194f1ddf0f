"""``kernelcast models``: a group whose commands are read when one is asked for.

They need scikit-learn, which takes longer to import than all the rest.
"""

import click

_COMMANDS = ("ls", "pin", "rollback", "show", "unpin")


class _ModelCommands(click.Group):
    """Looks its commands up in `kernelcast.cli.train.registry`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        from kernelcast.cli.train.registry import COMMANDS

        return COMMANDS[cmd_name]


@click.group(cls=_ModelCommands, short_help="Look at trained models, pin them, roll back.")
def models() -> None:
    """Look at trained models, pin a version, roll back.

    A registry is a folder or URL with the versions of each model. Estimates use the pinned
    version, else the latest. It is `models` in the data folder (KERNELCAST_DATA), or what
    --registry or KERNELCAST_MODELS name.
    """
