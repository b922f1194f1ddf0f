"""``kernelcast data``: a group whose commands are read when one is asked for.

They need the database's and Parquet's libraries, which take longer to import than all the rest.
"""

import click

_COMMANDS = ("check", "export", "import", "ls", "merge", "rm", "show")


class _DataCommands(click.Group):
    """Looks its commands up in `kernelcast.cli.data.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command."""
        if cmd_name not in _COMMANDS:
            return None
        from kernelcast.cli.data.commands import COMMANDS

        return COMMANDS[cmd_name]


@click.group(cls=_DataCommands, short_help="Look at, check, remove and exchange observations.")
def data() -> None:
    """Look at, check and exchange observations: what models learn from.

    The store is a SQLite file in the data folder (KERNELCAST_DATA), or what --store or
    KERNELCAST_STORE name: another file, or a PostgreSQL database by URL that several machines
    share.
    """
