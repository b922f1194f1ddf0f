"""Ctrl-C and the progress bar of long work."""

import click
import pytest
from click.testing import CliRunner

from kernelcast.cli.app import _Commands
from kernelcast.cli.terminal import ExitStatus, progress_bar


@click.command()
def breaks_while_it_ends() -> None:
    """Fail on the way out."""
    try:
        raise KeyboardInterrupt
    finally:
        raise RuntimeError("cannot join thread before it is started")


@click.command()
def breaks() -> None:
    """Fail."""
    raise RuntimeError("of its own accord")


@pytest.mark.parametrize(
    ("command", "status"),
    [(breaks_while_it_ends, ExitStatus.INTERRUPTED), (breaks, ExitStatus.FAILED)],
)
def test_a_library_that_breaks_after_ctrl_c(command: click.Command, status: ExitStatus) -> None:
    """Is no error of its own; without Ctrl-C it is."""
    commands = _Commands("kernelcast", commands={"breaks": command})
    shown = CliRunner().invoke(commands, ["breaks"])
    assert shown.exit_code == status
    assert ("internal error" in shown.output) == (status is ExitStatus.FAILED)


def _show(capsys: pytest.CaptureFixture[str], *told: tuple[int, int, str, float | None]) -> str:
    with progress_bar() as tell:
        for one in told:
            tell(*one)
    return capsys.readouterr().err


def test_it_says_what_is_done_and_what_the_rest_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is told, else by the pace of the parts that are done; a pipe gets nothing."""
    assert not _show(capsys, (1, 2, "fits", None))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    shown = _show(capsys, (2, 9, "nbody: sampling", 125.0))
    assert "2/9" in shown
    assert "about 2 min left" in shown
    assert "nbody: sampling" in shown
    assert "left" not in _show(capsys, (1, 9, "fits", None))
    assert "about" in _show(capsys, (1, 9, "fits", None), (2, 9, "fits", None))
