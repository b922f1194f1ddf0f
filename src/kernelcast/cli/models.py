"""The commands of ``kernelcast models``."""

import json
from typing import Final

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import present
from kernelcast.cli.training import REGISTRY
from kernelcast.models.evidence.model import load_evidence, model_to_json
from kernelcast.models.validation.report import summarise_report
from kernelcast.records.plain import pick
from kernelcast.reports.numbers import NOTHING
from kernelcast.reports.presenter import Part, Section, Table
from kernelcast.reports.validation import tabulate_scores
from kernelcast.training.registry import ModelVersions, is_evidence, load_model, open_registry

_KEYS: Final = ("name", "versions", "used", "latest", "pinned")


@click.group(short_help="Look at trained models, pin them, roll back.")
def models() -> None:
    """Look at trained models, pin a version, roll back.

    A registry is a folder or URL with the versions of each model. Estimates use the pinned
    version, else the latest. It is `models` in the data folder (KERNELCAST_DATA), or what
    --registry or KERNELCAST_MODELS name.
    """


@option.command("ls", of=models, short="List the models.")
def list_versions(
    registry_url: str | None = REGISTRY,
) -> None:
    """List the models of the registry with their versions."""
    registry = open_registry(registry_url)
    content = [pick(one, *_KEYS) for one in registry.list_models()]
    table = Table.of(content, {
        "model": ("text", "name"), "versions": ("whole", lambda one: len(one["versions"])),
        "in use": ("text", lambda one: one["used"] or NOTHING),
        "latest": ("text", lambda one: one["latest"] or NOTHING),
        "pinned": ("text", lambda one: one["pinned"] or NOTHING),
    })  # fmt: skip
    nothing = f"{registry.url}: no models yet; `kernelcast train` makes them"
    present(content, table if content else nothing)


@option.command("show", of=models, short="Show what is known of a model.")
def show_model(
    registry_url: str | None = REGISTRY,
    name: str = option.argument("NAME"),
    version: str | None = option.given(
        "--version VERSION", "A version or the beginning of it.  [default: the one in use]"
    ),
) -> None:
    """Show what a model has learned from, how good it is, and what it takes."""
    registry = open_registry(registry_url)
    versions = registry.find_model(name)
    wanted = versions.choose(version)
    known = {**pick(versions, *_KEYS), "version": wanted}
    facts = {"model": name, "version": str(wanted), "versions": ", ".join(versions.versions)}
    if is_evidence(name):
        model = load_evidence(registry, name, wanted)
        found = {
            "calibrated": dict(model.facts),
            "samplers": list(model.samplers),
            "numbers": json.loads(model_to_json(model)),
        }
        facts |= {
            "calibrated with": _plain(found["calibrated"]), "samplers": _plain(found["samplers"])
        }  # fmt: skip
        present({**known, **found}, facts)
        return
    stored = load_model(registry, name, wanted)
    told = stored.describe()
    facts |= {
        "schema": f"{told['schema']} ({len(told['features'])} features)",
        **{key: _plain(value) for key, value in told["learned"].items() if key != "name"},
        "trained with": _plain(told["trained_with"]),
    }
    report = stored.report
    parts: list[Part] = [facts, "was not validated"]
    if report is not None:
        parts[1] = f"validated with one {report.split} held out at a time"
        parts += [
            Section(title=one, parts=[tabulate_scores(report, one)]) for one in report.devices
        ]
    content = {
        **known,
        **told,
        "samplers": list(stored.samplers),
        "validation": None if report is None else summarise_report(report),
    }
    present(content, *parts)


@option.command("pin", of=models, short="Use one version, whatever is trained later.")
def pin_version(
    registry_url: str | None = REGISTRY,
    name: str = option.argument("NAME"),
    version: str = option.argument("VERSION"),
) -> None:
    """Use one version (or the one that begins so), whatever is trained later."""
    _tell(open_registry(registry_url).pin(name, version))


@option.command("unpin", of=models, short="Use the latest version again.")
def unpin_version(
    registry_url: str | None = REGISTRY,
    name: str = option.argument("NAME"),
) -> None:
    """Use the latest version again."""
    _tell(open_registry(registry_url).pin(name, None))


@option.command("rollback", of=models, short="Make the version before the latest the latest.")
def roll_back(
    registry_url: str | None = REGISTRY,
    name: str = option.argument("NAME"),
) -> None:
    """Make the version before the latest the latest; nothing is deleted."""
    _tell(open_registry(registry_url).roll_back(name))


def _tell(one: ModelVersions) -> None:
    pinned = ", pinned" if one.pinned else ""
    told = f"{one.name}: {one.used} is in use{pinned}; the latest is {one.latest}"
    present(pick(one, *_KEYS), told)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={_plain(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
