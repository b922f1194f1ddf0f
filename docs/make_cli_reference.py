"""Writes docs/reference/cli.md from the commands' own help.

``python docs/make_cli_reference.py`` writes it; with ``--check`` it only says, by its exit status,
whether the file is up to date. Options and paragraphs that several commands have alike are shown
once, above all commands.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path

import click

from kernelcast.cli import app

REFERENCE = Path(__file__).parent / "reference" / "cli.md"
_WIDTH = 88
_LEAST_COMMANDS = 2
_HEADER = """# All options

<!-- Written by docs/make_cli_reference.py from the commands' help; do not edit. -->

`python -m kernelcast` is the same as `kernelcast`.

## Options of several commands

Commands name these after *Also*, but not `--help` and `--debug`, which all have.
"""

_Part = tuple[str, str]
"""An option as it is written and what it does, or a paragraph and nothing."""


def make_reference() -> str:
    """Give the text of the reference: every command with what only it has."""
    contexts = list(_list_contexts(_make_context(app, "kernelcast", None)))
    options = _find_shared(map(_list_options, contexts))
    paragraphs = _find_shared(map(_list_paragraphs, contexts))
    formatter = click.HelpFormatter(width=_WIDTH)
    formatter.write_dl(sorted(options))
    head = f"{_HEADER}\n```text\n{formatter.getvalue()}```\n"
    shared = "".join(f"\n{text}\n" for text, _ in paragraphs)
    sections = (_describe(context, {*options, *paragraphs}) for context in contexts)
    return "\n".join([head + shared, *sections])


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


def _list_contexts(context: click.Context) -> Iterator[click.Context]:
    """List a command and, of a group, the commands inside it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in sorted(context.command.list_commands(context)):
            if (member := context.command.get_command(context, name)) is not None:
                yield from _list_contexts(_make_context(member, name, context))


def _list_options(context: click.Context) -> list[_Part]:
    """List the options of a command: how they are written, and what they do."""
    options = (one for one in context.command.get_params(context) if isinstance(one, click.Option))
    return [record for one in options if (record := one.get_help_record(context))]


def _list_paragraphs(context: click.Context) -> list[_Part]:
    return [(text, "") for text in cleandoc(context.command.help or "").split("\n\n")]


def _find_shared(commands: Iterable[list[_Part]]) -> list[_Part]:
    """Find what several commands have alike; of an option with two texts, the more frequent."""
    counts = Counter(part for parts in commands for part in parts)
    shared: dict[str, _Part] = {}
    for part, count in counts.most_common():
        if count >= _LEAST_COMMANDS:
            shared.setdefault(part[0], part)
    return list(shared.values())


def _describe(context: click.Context, shared: set[_Part]) -> str:
    """Describe a command: usage, what it does, its own options and the names of the shared."""
    command, formatter = context.command, click.HelpFormatter(width=_WIDTH)
    command.format_usage(context, formatter)
    formatter.write_paragraph()
    with formatter.indentation():
        own = [one[0] for one in _list_paragraphs(context) if one not in shared]
        formatter.write_text("\n\n".join(own))
    options = _list_options(context)
    if own_options := [one for one in options if one not in shared]:
        with formatter.section("Options"):
            formatter.write_dl(own_options)
    if isinstance(command, click.Group) and context.parent is None:
        command.format_commands(context, formatter)
    names = [f"`{one[0].split()[0].rstrip(',')}`" for one in options if one in shared]
    names = [one for one in names if one not in {"`-h`", "`--debug`"}]
    also = f"Also {', '.join(names)}.\n" if names else ""
    text = formatter.getvalue().rstrip()
    return f"## {context.command_path}\n\n```text\n{text}\n```\n" + (also and f"\n{also}")


def _make_context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    # A width of our own: help must not depend on the terminal it is written from.
    settings = {**command.context_settings, "max_content_width": _WIDTH, "terminal_width": _WIDTH}
    return click.Context(command, info_name=name, parent=parent, **settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
