"""Names of commands: completed as click does, and the nearest where one is wrong."""

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["estimte"], "'estimte'. Did you mean 'estimate'?"),
        (["data", "exprt"], "'exprt'. Did you mean 'export'?"),
        (["zzz"], "'zzz'."),
    ],
)
def test_the_nearest_command_is_named(words: list[str], told: str) -> None:
    """Refuses a command that is none, and names the one that was meant."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert f"No such command {told}\n" in done.stderr
