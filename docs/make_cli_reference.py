"""Writes docs/reference/cli.md from the commands' own help.

``python docs/make_cli_reference.py`` writes it; with ``--check`` it only says, by its exit status,
whether the file is up to date.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kernelcast.cli import app

REFERENCE = Path(__file__).parent / "reference" / "cli.md"
_WIDTH = 88
_HEADER = """# All options

<!-- Written by docs/make_cli_reference.py from the commands' help; do not edit. -->

`python -m kernelcast` is the same as `kernelcast`.
"""


def make_reference() -> str:
    """Give the text of the reference: every command with its help."""
    sections = [f"## {path}\n\n```text\n{text}\n```\n" for path, text in _list_helps()]
    return "\n".join([_HEADER, *sections])


def main(arguments: list[str]) -> int:
    """Write or check the reference; give the exit status."""
    text = make_reference()
    if "--check" not in arguments:
        REFERENCE.parent.mkdir(parents=True, exist_ok=True)
        REFERENCE.write_text(text, encoding="utf-8")
        return 0
    if REFERENCE.is_file() and REFERENCE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{REFERENCE} is out of date; run `python docs/make_cli_reference.py`\n")
    return 1


def _list_helps() -> Iterator[tuple[str, str]]:
    """Give each command's path and help text, the program's own first."""
    root = _make_context(app, "kernelcast", None)
    yield root.command_path, app.get_help(root)
    yield from _list_members(root)


def _list_members(parent: click.Context) -> Iterator[tuple[str, str]]:
    """Give the commands of a group, and of the groups inside it."""
    group = parent.command
    if not isinstance(group, click.Group):
        return
    for name in sorted(group.list_commands(parent)):
        command = group.get_command(parent, name)
        if command is not None:
            context = _make_context(command, name, parent)
            yield context.command_path, command.get_help(context)
            yield from _list_members(context)


def _make_context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    # A width of our own: help must not depend on the terminal it is written from.
    settings = {**command.context_settings, "max_content_width": _WIDTH, "terminal_width": _WIDTH}
    return click.Context(command, info_name=name, parent=parent, **settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
