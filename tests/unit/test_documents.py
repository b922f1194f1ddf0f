import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

import kernelcast
from kernelcast.cli import app
from kernelcast.launches.machines import list_machines
from kernelcast.launches.problem_file import ARGUMENT_KINDS, ProblemTemplate
from kernelcast.records.arguments import Access, ElementType, Init
from kernelcast.records.device import Trait
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import DeviceAnswer, Measurement
from kernelcast.records.machine import (
    CacheFacts,
    Curve,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.yaml_files import list_parameters
from support.builders import make_estimate

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("examples/*.md")])
ADR_HEADINGS = ["Status", "Context", "Decision", "Alternatives", "Consequences"]
COMMANDS = {
    name: command
    for name in app.list_commands(click.Context(app))
    if (command := app.get_command(click.Context(app), name)) is not None
}
PROBLEM_KEYS = {
    key
    for make in (ProblemTemplate, *(make for _, make in ARGUMENT_KINDS.values()))
    for key in list_parameters(make)
} - {"root", "overrides"}

_CODE = re.compile(r"```.*?```", re.DOTALL)
_COMMAND = re.compile(r"^(?P<program>kernelcast )?(?P<name>[a-z]+)(?P<words>.*)")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_OPTION = re.compile(r"(?<![\w-])--[a-z]+\d*(?:-[a-z]+)*")
_QUOTED = re.compile(r"`([^`\n]+)`|<!-- output: (.+?) -->")
_TARGET = re.compile(r"^make (?P<target>[a-z]+)\b")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _headings(text: str, level: int) -> list[str]:
    return re.findall(rf"^{'#' * level} (.+)$", _CODE.sub("", text), re.MULTILINE)


def _shown_commands(text: str) -> list[str]:
    """Give the lines of code blocks, quoted words, and commands whose output is shown."""
    lines = [line for block in _CODE.findall(text) for line in block.splitlines()]
    return [*lines, *(a or b for a, b in _QUOTED.findall(_CODE.sub("", text)))]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _errors(base: type[KernelcastError] = KernelcastError) -> Iterator[type[KernelcastError]]:
    if base.__module__ == KernelcastError.__module__:  # tests may make their own
        yield base
    for one in base.__subclasses__():
        yield from _errors(one)


def _options(command: str) -> set[str]:
    """Give the options of a command, or of all commands of a group."""
    options = {
        option for one in _members(COMMANDS[command]) for p in one.params for option in p.opts
    }
    return {option for option in options if option.startswith("--")}


def _members(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None
            yield from _members(member)


def _answer_keys() -> set[str]:
    """Give the keys of an answer with a measurement and of a refusal."""
    estimate = make_estimate(measurement=Measurement(durations_s=(2.0,)))
    about = {"device": "a device", "device_id": "device", "problem": "p", "kernel": "kernel"}
    answer = DeviceAnswer(**about, estimate=estimate)
    refusal = DeviceAnswer(**about, error=KernelcastError("no"))
    return {*answer.to_dict(), *refusal.to_dict()}


def test_every_problem_key_has_a_heading_and_every_heading_is_a_key() -> None:
    """Explains each key of problem files, and none that does not exist."""
    headings = _headings(_read(DOCS / "reference/problem-files.md"), 3)
    assert sorted(heading.strip("`") for heading in headings) == sorted(PROBLEM_KEYS)


def test_the_reference_names_every_choice_and_type() -> None:
    """Names each value that `init` and `access` can have, and element types that can be read."""
    text = _read(DOCS / "reference/problem-files.md")
    words = [*(one.value for one in Access), *(one.value for one in Init if one != Init.FILE)]
    assert [word for word in (*words, ".npy") if f"`{word}`" not in text] == []
    named = re.findall(r"`(\w+)`", text.split("\n## Types\n")[1])
    bases = {ElementType.parse(name).base for name in named}
    assert {f"{k}{b}" for k in ("int", "uint") for b in (8, 16, 32, 64)} <= bases
    assert {"float16", "float32", "float64"} <= bases


def test_every_error_is_described_and_drawn_once() -> None:
    """Has a row and a place in the tree for each error class, and for nothing else."""
    text = _read(DOCS / "reference/errors.md")
    names = sorted(one.__name__ for one in _errors())
    assert sorted(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == names
    assert sorted(re.findall(r"\b\w+Error\b", text.split("```")[1])) == names


def test_decisions_have_five_headings_and_are_listed() -> None:
    """Records have the template's headings, with something below each, and go without gaps."""
    assert _headings(_read(DOCS / "adr/template.md"), 2) == ADR_HEADINGS
    listed = _read(DOCS / "adr/README.md")
    for number, path in enumerate(sorted((DOCS / "adr").glob("[0-9]*.md")), start=1):
        text = _read(path)
        assert path.name.startswith(f"{number:04}-")
        assert _headings(text, 1)[0].startswith(f"{number:04}: ")
        assert f"({path.name})" in listed
        assert _headings(text, 2) == ADR_HEADINGS
        assert all(part.strip() for part in re.split(r"^## .+$", text, flags=re.MULTILINE)), path


def test_every_key_of_a_machine_description_is_documented() -> None:
    """Has a row or a heading for each key of machine descriptions, and lists those shipped."""
    text = _read(DOCS / "reference/machine-files.md")
    shown = re.findall(r"^\| (`.+?) \|", text, re.MULTILINE) + _headings(text, 2)
    documented = {key for row in shown for key in re.findall(r"`([a-z_]+)`", row)}
    records = (MachineDescription, InstructionFacts, CacheFacts, MemoryFacts, Curve, Trait)
    keys = {one.name for record in records for one in fields(record)} - {"space"}
    assert keys <= documented
    section = text.split("## Shipped descriptions")[1]
    shipped = {one.name for one in list_machines() if one.is_shipped}
    assert shipped <= set(re.findall(r"`([a-z0-9-]+)`", section))


@pytest.mark.parametrize("script", ["make_architecture.py", "make_cli_reference.py"])
def test_written_documents_are_up_to_date(script: str) -> None:
    """Are what the script writes from contracts, docstrings and help."""
    found = subprocess.run(
        [sys.executable, DOCS / script, "--check"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_the_files_of_frequent_changes_are_there() -> None:
    """Names files that exist, two at most for each change."""
    section = _read(ROOT / "CONTRIBUTING.md").split("## Where to change what")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 10
    for _, opened, *_ in rows:
        paths = re.findall(r"`([^`]+)`", opened)
        assert 1 <= len(paths) <= 2
        for path in paths:
            assert any((folder / path).is_file() for folder in (ROOT / "src/kernelcast", ROOT)), (
                path
            )


def test_every_key_of_an_answer_is_documented() -> None:
    """Has a row for each key that `--json` prints, and for no other."""
    table = _read(DOCS / "reference/command-line.md").split("## Objects of `estimate --json`")[1]
    rows = re.findall(r"^\| (`.+?) \|", table.split("\n## ")[0], re.MULTILINE)
    documented = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert documented == _answer_keys()


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_what_a_document_shows_is_there(path: Path) -> None:
    """Commands with their options, targets of the Makefile, and files that are linked."""
    text = _read(path)
    is_past = path.name == "CHANGELOG.md"
    for match in map(_COMMAND.match, _shown_commands(text)):
        if match is None or (is_past and (match["name"] == "simulate" or not match["program"])):
            continue
        if match["name"] in COMMANDS:  # also without the program's name: `estimate --json`
            known = _options(match["name"]) | {"--help"}
            assert set(_OPTION.findall(match["words"])) <= known, match[0]
        else:
            assert not match["program"], match[0]
    shown = map(_TARGET.match, _shown_commands(text))
    named = {match["target"] for match in shown if match is not None}
    assert named <= set(re.findall(r"^([a-z]+):", _read(ROOT / "Makefile"), re.MULTILINE))
    for match in _LINK.finditer(_CODE.sub("", text)):
        target = match["target"].split("#")[0]
        if target and "://" not in target:
            assert (path.parent / target).exists(), match["target"]
    # No index has the package: it is installed from a checkout, a wheel or a repository.
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        assert not re.search(r"pip install (?:-\S+ )*'?kernelcast(?:\[[^]]*\])?'?\s*(?:#|$)", block)


def test_the_python_reference_has_every_name() -> None:
    """Documents all that the package offers, each at the module where it is found."""
    shown = re.findall(r"^::: (kernelcast\S+)$", _read(DOCS / "reference/python.md"), re.MULTILINE)
    offered = {
        f"kernelcast.{home}.{name}" for home, names in kernelcast._HOMES.items() for name in names
    }
    assert offered <= set(shown)
    for one in shown:
        module, _, name = one.rpartition(".")
        assert hasattr(importlib.import_module(module), name)


def test_every_document_room_and_example_is_listed() -> None:
    """In the navigation, in the picture of the rooms, in the table of examples."""
    navigation = _read(ROOT / "mkdocs.yml").partition("\nnav:\n")[2]
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert set(re.findall(r"[\w/.-]+\.md", navigation)) - {"repository/CHANGELOG.md"} == pages
    page = _read(DOCS / "explanation/pictures/architecture.svg")
    rooms = {one.parent.name for one in (ROOT / "src" / "kernelcast").glob("*/__init__.py")}
    assert all(f">{one}<" in page for one in rooms - {"testing"})
    listed = _read(ROOT / "examples/README.md")
    for problem in ROOT.glob("examples/*/*.yaml"):
        assert f"({problem.parent.name}/{problem.name})" in listed


def test_readme_and_glossary_are_short() -> None:
    """What, how and where to go within 120 lines; one word for one thing, few of our own."""
    assert len(_read(ROOT / "README.md").splitlines()) <= 120
    rows = re.findall(
        r"^\| (?!term |---)([^|]+) \|", _read(DOCS / "reference" / "glossary.md"), re.M
    )
    assert 40 <= len(rows) <= 60
    assert len(set(rows)) == len(rows)
