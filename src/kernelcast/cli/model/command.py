"""``kernelcast model``: what the analytic models say, without running anything."""

from importlib import import_module

import click

_COMMANDS = {
    "cpu": "kernelcast.cli.model.cpu.command:cpu",
    "fit": "kernelcast.cli.model.fit:fit",
    "gpu": "kernelcast.cli.model.gpu.command:gpu",
    "scratchpad": "kernelcast.cli.model.scratchpad.command:scratchpad",
}
"""Where each command stands; a command's libraries load when it is asked for."""


class _LazyGroup(click.Group):
    """Imports the command that is asked for, and no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return sorted({*super().list_commands(ctx), *_COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Give a command, or None if there is none of that name."""
        place = _COMMANDS.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = place.partition(":")
        command = getattr(import_module(module), name)
        return command if isinstance(command, click.Command) else None


@click.group(cls=_LazyGroup, short_help="Ask the analytic models of caches, bandwidth and latency.")
def model() -> None:
    """Ask the analytic models: time from addresses and a machine description, nothing is run."""
