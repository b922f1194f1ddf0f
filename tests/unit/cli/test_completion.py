"""Completion of commands, which click brings along."""

import pytest
from click.shell_completion import BashComplete

from kernelcast.cli import app


@pytest.mark.parametrize(
    ("words", "begun", "offered"),
    [
        ([], "est", ["estimate"]),
        (["data"], "ex", ["export"]),
        (["estimate"], "--no-s", ["--no-sampling"]),
    ],
)
def test_commands_and_options_are_completed(
    words: list[str], begun: str, offered: list[str]
) -> None:
    """Offers commands, commands of groups and options, though each is imported when it runs."""
    complete = BashComplete(app, {}, "kernelcast", "_KERNELCAST_COMPLETE")
    assert [one.value for one in complete.get_completions(words, begun)] == offered
