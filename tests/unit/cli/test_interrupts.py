"""Ctrl-C ends a command as Ctrl-C, whatever it breaks on its way."""

import click
import pytest
from click.testing import CliRunner

from kernelcast.cli.app import _Commands
from kernelcast.cli.terminal import ExitStatus


@click.command()
def breaks_while_it_ends() -> None:
    """Fail on the way out."""
    try:
        raise KeyboardInterrupt
    finally:
        msg = "cannot join thread before it is started"
        raise RuntimeError(msg)


@click.command()
def breaks() -> None:
    """Fail."""
    msg = "of its own accord"
    raise RuntimeError(msg)


@pytest.mark.parametrize(
    ("command", "status"),
    [(breaks_while_it_ends, ExitStatus.INTERRUPTED), (breaks, ExitStatus.FAILED)],
)
def test_a_library_that_breaks_after_ctrl_c(command: click.Command, status: ExitStatus) -> None:
    """Is no error of its own; without Ctrl-C it is."""
    commands = _Commands("kernelcast", commands={"breaks": command}, places="")
    shown = CliRunner().invoke(commands, ["breaks"])
    assert shown.exit_code == status
    assert ("internal error" in shown.output) == (status is ExitStatus.FAILED)
